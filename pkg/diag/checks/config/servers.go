package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// serverFlags are the flags of k3s and RKE2 that decide how Services work and
// that servers can have differently without noticing, or which they read only
// when they start. disable-kube-proxy among servers is kube-proxy-return's.
var serverFlags = []string{
	"disable", "disable-kube-proxy", "kube-proxy-arg", "flannel-backend", "disable-network-policy", "cluster-cidr", "service-cidr", "cluster-dns",
	"service-node-port-range", "egress-selector-mode",
}

// RancherDrift checks the flags of k3s and RKE2: servers against each other, and
// each node's files against what runs.
func RancherDrift() *diag.Check {
	return &diag.Check{
		Name:  "config-drift-servers",
		Doc:   "flags of k3s and RKE2 that differ between servers, or between a node's files and what runs",
		Scope: diag.OfCluster,
		Rules: []*diag.Rule{configDrift},
		Wants: []fact.Named{fact.RancherFlags},
		Applies: func(v *fact.View) string {
			for _, r := range fact.RancherFlags.Each(v) {
				if r.Err == nil || !absent(r.Err) {
					return ""
				}
			}
			return "no node has flags of k3s or RKE2"
		},
		Run: judgeServers,
	}
}

func judgeServers(p *diag.Pass) error {
	values := map[string]map[string][]string{} // flag, value, servers
	servers, looked := 0, false
	for node, r := range fact.RancherFlags.Each(p.View()) {
		q := p.On(node)
		f := r.Value
		switch {
		case r.Err != nil && !absent(r.Err):
			q.Unknown(fact.RancherFlags.ID(), r.Err)
			continue
		case r.Err != nil:
			continue
		case f.NotRead != nil:
			q.Unknown(fact.RancherFiles.ID(), f.NotRead)
		}
		looked = looked || f.Looked || f.NotRead != nil
		pending(q, f)
		if !f.Server {
			continue
		}
		servers++
		for _, flag := range serverFlags {
			words, ok := f.Runs(flag)
			if f.Running == nil {
				words, _, ok = f.Value(flag)
			}
			if !ok {
				words = unset
			}
			if values[flag] == nil {
				values[flag] = map[string][]string{}
			}
			values[flag][words] = append(values[flag][words], node)
		}
	}
	for _, flag := range serverFlags {
		if len(values[flag]) > 1 && flag != "disable-kube-proxy" {
			differ(p, flag, values[flag], servers)
		}
	}
	if !looked {
		p.Note("not looked at: the files of k3s or RKE2, which hold from the next start on; --host looks")
	}
	return nil
}

// unset stands for a flag that a server does not name, among the values of
// others; it is no value itself, as a switch that is off is "false".
const unset = ""

// differ tells a flag on which servers disagree. A switch that is off and one
// that is not named are the same.
func differ(p *diag.Pass, flag string, by map[string][]string, servers int) {
	if off := by["false"]; off != nil {
		by[unset] = append(by[unset], off...)
		delete(by, "false")
	}
	if len(by) < 2 {
		return
	}
	var parts []string
	for words, nodes := range by {
		slices.Sort(nodes)
		what := words
		if words == unset {
			what = "not set"
		}
		parts = append(parts, fmt.Sprintf("%s on %s", what, several(nodes)))
	}
	slices.Sort(parts)
	p.Find(configDrift, diag.Report{
		Subject: "cluster", Address: flag, Severity: diag.Warning, Proof: []fact.Named{fact.RancherFlags},
		Message: fmt.Sprintf("the %d servers do not agree on %s: %s. What holds depends on the server that is asked, or that started last", servers, flag, strings.Join(parts, "; ")),
	})
}

// pending tells what a restart of the node's process would change.
func pending(p *diag.Pass, f fact.Flags) {
	if f.Running == nil || f.Next == nil {
		return
	}
	for _, flag := range serverFlags {
		next, where, ok := f.Value(flag)
		if !ok {
			continue
		}
		r := diag.Report{Subject: "node/" + p.Node(), Address: flag, Severity: diag.Warning, Proof: []fact.Named{fact.RancherFlags}}
		runs, named := f.Runs(flag)
		switch {
		case !f.Server:
			if flag != "disable-kube-proxy" {
				continue
			}
			r.Severity = diag.Info
			r.Message = fmt.Sprintf("%s sets %s on an agent, where it does nothing: an agent takes it from its server when it starts", where, flag)
		case same(runs, next):
			continue
		case !named || runs == "":
			r.Message = fmt.Sprintf("%s is %s in %s and not in effect: the server was not restarted since", flag, next, where)
		case flag == "disable-kube-proxy":
			r.Message = fmt.Sprintf("%s is %s in %s and %s in the running server: its next start brings kube-proxy back, unless the command line says otherwise", flag, next, where, runs)
		default:
			r.Message = fmt.Sprintf("%s is %s in %s and %s in the running server: a restart is pending, or the command line says otherwise", flag, next, where, runs)
		}
		p.Find(configDrift, r)
	}
}

// same holds for a switch that is off and not named, too.
func same(runs, next string) bool {
	return runs == next || runs == "" && (next == "false" || next == "")
}

// several names up to five nodes and counts the others.
func several(nodes []string) string {
	if len(nodes) <= 5 {
		return strings.Join(nodes, ", ")
	}
	return fmt.Sprintf("%s +%d more", strings.Join(nodes[:5], ", "), len(nodes)-5)
}

func absent(err error) bool { return errors.Is(err, source.ErrAbsent) }
