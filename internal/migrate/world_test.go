package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
)

var errDead = errors.New("killed")

// pretend is a cluster and the process that changes it. The process dies after
// so many effects, either just before one or just after it.
type pretend struct {
	nodes      []string
	values     []map[string]any // by revision, the first is 1
	generation int64
	reason     string
	running    map[string]map[string]any // what each agent runs with
	rolls      int

	fenced, retired bool
	off             map[string]bool
	configMap       bool

	calls, dieAt int
	after        bool   // die after the effect instead of before it
	broken       string // a node whose agent never takes the values
}

func newPretend(nodes ...string) *pretend {
	p := &pretend{nodes: nodes, values: []map[string]any{{"kubeProxyReplacement": "false"}}, generation: 1, running: map[string]map[string]any{}, off: map[string]bool{}, configMap: true, dieAt: -1}
	p.roll()
	p.rolls = 0
	return p
}

func (p *pretend) present() map[string]any { return p.values[len(p.values)-1] }

func (p *pretend) roll() {
	p.rolls++
	for _, n := range p.nodes {
		if n != p.broken {
			p.running[n] = maps.Clone(p.present())
		}
	}
}

// effect counts, and does it unless the process is dead.
func (p *pretend) effect(do func()) error {
	p.calls++
	switch {
	case p.dieAt >= 0 && p.calls > p.dieAt, p.calls == p.dieAt && !p.after:
		return errDead
	}
	do()
	if p.calls == p.dieAt {
		return errDead
	}
	return nil
}

func (p *pretend) dead() bool { return p.dieAt >= 0 && p.calls >= p.dieAt }

func (p *pretend) Revision(context.Context) (string, error) { return strconv.Itoa(len(p.values)), nil }

func (p *pretend) Set(_ context.Context, c Change) error {
	if set(p.present(), c.Values) {
		return nil
	}
	return p.effect(func() {
		next := maps.Clone(p.present())
		for path, v := range c.Values {
			next[path] = v
		}
		p.replace(next)
	})
}

// replace is a new revision. The address is in the pods' template, which rolls
// them; all else is in the ConfigMap, which does not.
func (p *pretend) replace(next map[string]any) {
	template := p.present()["k8sServiceHost"] != next["k8sServiceHost"]
	p.values = append(p.values, next)
	if template {
		p.generation++
		p.roll()
	}
}

func (p *pretend) Back(_ context.Context, _ Change, revision string) error {
	n, err := strconv.Atoi(revision)
	if err != nil {
		return err
	}
	if maps.Equal(p.present(), p.values[n-1]) {
		return nil
	}
	return p.effect(func() { p.replace(maps.Clone(p.values[n-1])) })
}

func (p *pretend) Generation(context.Context) (int64, error) { return p.generation, nil }

func (p *pretend) Restart(_ context.Context, reason string) error {
	if p.reason == reason {
		return nil
	}
	return p.effect(func() {
		p.reason = reason
		p.generation++
		p.roll()
	})
}

func (p *pretend) Open(context.Context) (string, error) { return "", nil }

func (p *pretend) See(_ context.Context, nodes []string) (map[string]Seen, error) {
	out := map[string]Seen{}
	for _, n := range nodes {
		r := p.running[n]
		s := Seen{Proxy: "yes", Said: Want{Mode: "False", Masquerade: "iptables", HostRouting: "Legacy"}}
		if r["kubeProxyReplacement"] == "true" {
			s.Said.Mode = "True"
		}
		if r["bpf.masquerade"] == true {
			s.Said.Masquerade = "BPF"
		}
		if r["bpf.hostLegacyRouting"] == false {
			s.Said.HostRouting = "BPF"
		}
		if host, ok := r["k8sServiceHost"]; ok {
			s.Said.APIServer = net.JoinHostPort(fmt.Sprint(host), fmt.Sprint(r["k8sServicePort"]))
		}
		if p.retired || p.fenced && p.off[n] {
			s.Proxy = "no"
		}
		out[n] = s
	}
	return out, nil
}

// proxies are the other interface of the same world: both have an Open.
type proxies struct{ *pretend }

func (p proxies) Affinity(context.Context) (json.RawMessage, error) {
	return json.RawMessage("null"), nil
}
func (p proxies) Fence(context.Context) error { return p.effect(func() { p.fenced = true }) }
func (p proxies) Unfence(context.Context, json.RawMessage) error {
	return p.effect(func() { p.fenced = false })
}

func (p proxies) Switch(_ context.Context, node string, off bool) error {
	return p.effect(func() {
		if off {
			p.off[node] = true
		} else {
			delete(p.off, node)
		}
	})
}

func (p proxies) Keep(context.Context) (json.RawMessage, error) {
	return json.RawMessage(`{"kept":true}`), nil
}
func (p proxies) Retire(context.Context) error {
	return p.effect(func() { p.retired, p.configMap = true, false })
}

func (p proxies) Restore(_ context.Context, raw json.RawMessage) error {
	if string(raw) != `{"kept":true}` {
		return fmt.Errorf("restored from %s", raw)
	}
	return p.effect(func() { p.retired, p.configMap = false, true })
}
func (p proxies) Gone(context.Context) (bool, error) { return p.retired && !p.configMap, nil }

// journal dies with the process.
type journal struct {
	plan.Memory
	world *pretend
}

func (j *journal) Append(ctx context.Context, e plan.Entry) error {
	if j.world.dead() {
		return errDead
	}
	return j.Memory.Append(ctx, e)
}

// state is what a rollback must bring back.
func (p *pretend) state() string {
	return fmt.Sprint(p.present(), p.running, p.fenced, p.retired, p.configMap, slices.Sorted(maps.Keys(p.off)))
}

func (p *pretend) world() *World {
	return &World{
		Values: p, Agents: p, Proxies: proxies{p}, Eyes: p,
		Pace: Pace{Poll: time.Second, Node: 3 * time.Second, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }},
	}
}
