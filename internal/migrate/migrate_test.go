package migrate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
)

func inputs() *Inputs {
	yes := true
	return &Inputs{
		Nodes: []string{"cp", "w-1", "w-2"}, Agents: Object{"kube-system", "cilium"},
		Release: Release{Object: Object{"kube-system", "cilium"}, Chart: "cilium/cilium", Version: "1.20.2"},
		Target:  Target{APIHost: "10.0.0.1", APIPort: "6443", Replace: &yes, Masquerade: &yes, HostRouting: &yes},
		Driver:  Driver{Kind: "helm"},
		Proxy:   Proxy{DaemonSet: &Object{"kube-system", "kube-proxy"}, ConfigMap: &Object{"kube-system", "kube-proxy"}},
		Order:   []string{"w-2"},
	}
}

func passing(int, bool) plan.Gate { return nil }

func engineOf(t *testing.T, p *pretend, j *journal) (*plan.Engine, *plan.Plan) {
	t.Helper()
	made, err := New(inputs(), p.world(), passing, "cluster")
	if err != nil {
		t.Fatal(err)
	}
	return &plan.Engine{ID: "m", Journal: j, Now: func() time.Time { return time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC) }}, made
}

// TestThereAndBack: all stages, then all of it taken back. Each change of the
// values rolls the agents exactly once.
func TestThereAndBack(t *testing.T) {
	p := newPretend("cp", "w-1", "w-2")
	start := p.state()
	e, made := engineOf(t, p, &journal{world: p})
	stand, err := e.Run(t.Context(), made, plan.Options{})
	if err != nil || !stand.Complete() {
		t.Fatalf("%v", err)
	}
	if p.rolls != 4 {
		t.Errorf("%d rolls of the agents, want one for each of four steps", p.rolls)
	}
	seen, _ := p.See(t.Context(), p.nodes)
	for n, s := range seen {
		if s.Said != (Want{"True", "BPF", "BPF", "10.0.0.1:6443"}) || s.Proxy != "no" {
			t.Errorf("%s: %+v", n, s)
		}
	}
	// A stage that is done is looked at again, and nothing is done again.
	calls := p.calls
	if _, err := e.Run(t.Context(), made, plan.Options{Stages: []string{Stage1}}); err != nil || p.calls != calls {
		t.Errorf("%d effects in a second run, %v", p.calls-calls, err)
	}
	if _, err := e.Rollback(t.Context(), made, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	if got := p.state(); got != start {
		t.Errorf("after the rollback:\n%s\nat the start:\n%s", got, start)
	}
}

// TestKilledAnywhere: the process dies before or after each effect. A fresh one
// that knows the journal and the cluster alone ends the plan, and in another run
// takes everything back.
func TestKilledAnywhere(t *testing.T) {
	full := newPretend("cp", "w-1", "w-2")
	e, made := engineOf(t, full, &journal{world: full})
	if _, err := e.Run(t.Context(), made, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	if full.calls < 9 {
		t.Fatalf("only %d effects", full.calls)
	}
	for k := 1; k <= full.calls; k++ {
		for _, after := range []bool{false, true} {
			for _, back := range []bool{false, true} {
				p := newPretend("cp", "w-1", "w-2")
				start := p.state()
				j := &journal{world: p}
				p.dieAt, p.after = k, after
				e, made := engineOf(t, p, j)
				if _, err := e.Run(t.Context(), made, plan.Options{}); err == nil {
					t.Fatalf("effect %d: it did not die", k)
				}
				p.dieAt = -1
				e, made = engineOf(t, p, j)
				if back {
					if _, err := e.Rollback(t.Context(), made, plan.Options{}); err != nil {
						t.Errorf("effect %d, after %t: rollback: %v", k, after, err)
					} else if p.state() != start {
						t.Errorf("effect %d, after %t: rolled back to\n%s, not\n%s", k, after, p.state(), start)
					}
					continue
				}
				stand, err := e.Run(t.Context(), made, plan.Options{})
				if err != nil || !stand.Complete() {
					t.Errorf("effect %d, after %t: resumed: %v", k, after, err)
					continue
				}
				if p.state() != full.state() {
					t.Errorf("effect %d, after %t: ended at\n%s, not\n%s", k, after, p.state(), full.state())
				}
				if p.rolls > 5 {
					t.Errorf("effect %d, after %t: %d rolls", k, after, p.rolls)
				}
			}
		}
	}
}

// TestBrokenNodeStops: an agent that does not come up as wanted stops the plan
// with its name, and the next stage is not begun.
func TestBrokenNodeStops(t *testing.T) {
	p := newPretend("cp", "w-1", "w-2")
	p.broken = "w-1"
	e, made := engineOf(t, p, &journal{world: p})
	_, err := e.Run(t.Context(), made, plan.Options{})
	if err == nil || !strings.Contains(err.Error(), "w-1: API server is not told, want 10.0.0.1:6443") {
		t.Errorf("%v", err)
	}
	if p.fenced || len(p.off) > 0 {
		t.Error("kube-proxy was touched although stage 1 is not done")
	}
}

// TestProxyStaysWhereNobodyReplacesIt: a node whose agent does not say True
// keeps its kube-proxy.
func TestProxyStaysWhereNobodyReplacesIt(t *testing.T) {
	p := newPretend("cp", "w-1", "w-2")
	e, made := engineOf(t, p, &journal{world: p})
	if _, err := e.Run(t.Context(), made, plan.Options{Stages: []string{Stage1}}); err != nil {
		t.Fatal(err)
	}
	p.running["w-2"]["kubeProxyReplacement"] = "false" // somebody else restarted it with other values
	_, err := e.Run(t.Context(), made, plan.Options{Stages: []string{Stage2}})
	if !errors.Is(err, plan.ErrRefused) || !strings.Contains(err.Error(), "the agent says KPR False") {
		t.Errorf("%v", err)
	}
	if len(p.off) > 0 {
		t.Errorf("switched off on %v", p.off)
	}
}

// TestByHand: where kube-proxy is no DaemonSet the plan says what to do, and
// goes on when it is done.
func TestByHand(t *testing.T) {
	p := newPretend("a")
	in := inputs()
	in.Nodes, in.Order, in.Proxy = []string{"a"}, nil, Proxy{ByHand: "disable-kube-proxy: true on every server"}
	made, err := New(in, p.world(), passing, "cluster")
	if err != nil {
		t.Fatal(err)
	}
	j := &journal{world: p}
	e := &plan.Engine{ID: "m", Journal: j, Now: time.Now}
	if _, err := e.Run(t.Context(), made, plan.Options{}); err == nil || !strings.Contains(err.Error(), "By hand: disable-kube-proxy: true on every server") {
		t.Errorf("%v", err)
	}
	p.retired = true
	if stand, err := e.Run(t.Context(), made, plan.Options{}); err != nil || !stand.Complete() {
		t.Errorf("%v", err)
	}
}

func TestInputs(t *testing.T) {
	if err := inputs().Valid(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Inputs){
		"belong together":         func(in *Inputs) { in.Target.APIPort = "" },
		"no port":                 func(in *Inputs) { in.Target.APIPort = "x" },
		"without scheme":          func(in *Inputs) { in.Target.APIHost = "https://a" },
		"want helm, command":      func(in *Inputs) { in.Driver.Kind = "ansible" },
		"argv, checkArgv":         func(in *Inputs) { in.Driver = Driver{Kind: "command", Argv: []string{"x"}} },
		"none of the plan's":      func(in *Inputs) { in.Order = []string{"other"} },
		"nodes: none":             func(in *Inputs) { in.Nodes, in.Order = nil, nil },
		"needs the replacement":   func(in *Inputs) { no := false; in.Target.Replace = &no },
		"neither a DaemonSet nor": func(in *Inputs) { in.Proxy = Proxy{} },
	} {
		in := inputs()
		change(in)
		if err := in.Valid(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	var b strings.Builder
	if err := inputs().Write(&b); err != nil {
		t.Fatal(err)
	}
	again, err := ReadInputs("x", strings.NewReader(b.String()))
	if err != nil || again.Valid() != nil || again.Target.APIHost != "10.0.0.1" {
		t.Errorf("%+v %v", again, err)
	}
	if _, err := ReadInputs("x", strings.NewReader("nods: []\n")); err == nil || !strings.Contains(err.Error(), "nods") {
		t.Errorf("an unknown key: %v", err)
	}
}

// TestHelm drives a helm that keeps a release in memory: its own keys only, the
// installed version, and what a killed helm left is taken back first.
func TestHelm(t *testing.T) {
	h := &fakeHelm{version: "1.20.2", revision: 4, status: "deployed", values: `{"kubeProxyReplacement":"false"}`}
	helm := &Helm{Release: inputs().Release, Kubeconfig: "/k", Run: h.run}
	c := inputs().Changes()[1]
	if r, err := helm.Revision(t.Context()); err != nil || r != "4" {
		t.Errorf("%s %v", r, err)
	}
	if err := helm.Set(t.Context(), c); err != nil || h.revision != 5 || !strings.Contains(h.file, "kubeProxyReplacement: \"true\"") {
		t.Errorf("%v, revision %d, %s", err, h.revision, h.file)
	}
	if err := helm.Set(t.Context(), c); err != nil || h.revision != 5 {
		t.Errorf("%v: upgraded again to revision %d", err, h.revision)
	}
	if err := helm.Back(t.Context(), c, "4"); err != nil || h.values != `{"kubeProxyReplacement":"false"}` {
		t.Errorf("%v: %s", err, h.values)
	}
	h.status = "pending-upgrade"
	if err := helm.Set(t.Context(), c); err != nil || h.rollbacks != 2 {
		t.Errorf("%v, %d rollbacks", err, h.rollbacks)
	}
	h.version = "1.21.0"
	if err := helm.Set(t.Context(), c); !errors.Is(err, plan.ErrRefused) {
		t.Errorf("another chart version: %v", err)
	}
	for _, argv := range h.calls {
		for _, w := range argv {
			if strings.Contains(w, "token") || strings.HasPrefix(w, "--wait") {
				t.Errorf("%q", argv)
			}
		}
	}
}

// TestCommanded: the operator's command runs only where its check fails, and
// nothing of the cluster stands in it.
func TestCommanded(t *testing.T) {
	var calls []string
	good := false
	c := &Commanded{Driver: Driver{Argv: []string{"do", "STEP", "VALUES"}, CheckArgv: []string{"check", "STEP"}, UndoArgv: []string{"undo", "STEP"}},
		Run: func(_ context.Context, argv, _ []string) ([]byte, error) {
			calls = append(calls, argv[0]+" "+argv[1])
			if argv[0] == "check" && !good {
				return nil, errors.New("exit status 1")
			}
			good = argv[0] != "undo"
			return nil, nil
		}}
	change := inputs().Changes()[0]
	for range 2 {
		if err := c.Set(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Back(t.Context(), change, ""); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(calls, "; "); got != "check api-address; do api-address; check api-address; check api-address; undo api-address" {
		t.Errorf("%s", got)
	}
}
