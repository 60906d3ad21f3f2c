package residue

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/internal/distro"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// disableList is the rule about a setting that is accepted and does nothing.
var disableList = &diag.Rule{
	Name: "k3s-disable-list", Severity: diag.Error,
	Title: "kube-proxy stands in the list disable, where k3s ignores it",
	Doc: `The list disable of k3s and RKE2 is for packaged components: traefik, servicelb, coredns. kube-proxy is none. The item is accepted without a word and does
nothing; the flag is disable-kube-proxy, on the servers. Agents take it from their server when they start, so they need a restart too.`,
	Proof:   []string{"kubectl get nodes -o jsonpath='{range .items[*]}{.metadata.name}{\" \"}{.metadata.annotations.k3s\\.io/node-args}{\"\\n\"}{end}'"},
	Remedy:  `Write disable-kube-proxy: true into the configuration of every server, restart the servers one by one, then the agents.`,
	Sources: []string{"k3s documentation, k3s server"},
}

// DisableList checks the arguments of k3s and RKE2.
func DisableList() *diag.Check {
	return &diag.Check{
		Name:  disableList.Name,
		Doc:   "kube-proxy in the list disable of k3s or RKE2",
		Scope: diag.OfNode,
		Rules: []*diag.Rule{disableList},
		Needs: []fact.Named{fact.NodeArgs},
		Applies: func(v *fact.View) string {
			if args, err := fact.NodeArgs.From(v); err == nil && args == nil || absent(err) {
				return "the node has no arguments of k3s or RKE2"
			}
			return ""
		},
		Run: func(p *diag.Pass) error {
			args, _ := fact.NodeArgs.From(p.View())
			if off, byList := distro.Switched(args); byList && !off {
				p.Find(disableList, diag.Report{Subject: "node/" + p.Node(), Severity: diag.Error, Proof: []fact.Named{fact.NodeArgs},
					Message: "kube-proxy is an item of disable, which does nothing: it still runs inside k3s or RKE2. The flag is disable-kube-proxy, on every server"})
			}
			return nil
		},
	}
}

// servers finds those of k3s and RKE2 that would give kube-proxy back to the
// agents, while others keep it away.
func servers(p *diag.Pass) {
	var off, on []string
	for node, r := range fact.NodeArgs.Each(p.View()) {
		if !slices.Contains(r.Value, "server") {
			continue
		}
		if is, _ := distro.Switched(r.Value); is {
			off = append(off, node)
		} else {
			on = append(on, node)
		}
	}
	if len(off) == 0 || len(on) == 0 {
		return
	}
	p.Find(comeBack, diag.Report{Subject: "cluster", Address: "servers", Severity: diag.Warning, Proof: []fact.Named{fact.NodeArgs},
		Message: fmt.Sprintf("disable-kube-proxy is set on %s and not on %s: agents that speak to the latter when they start run kube-proxy again", some(off), some(on))})
}

func absent(err error) bool { return errors.Is(err, source.ErrAbsent) }
