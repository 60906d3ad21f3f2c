package residue

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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
		Needs: []fact.Named{fact.RancherFlags},
		Applies: func(v *fact.View) string {
			if _, err := fact.RancherFlags.From(v); absent(err) {
				return "the node has no arguments of k3s or RKE2"
			}
			return ""
		},
		Run: func(p *diag.Pass) error {
			f, _ := fact.RancherFlags.From(p.View())
			r := diag.Report{Subject: "node/" + p.Node(), Severity: diag.Error, Proof: []fact.Named{fact.RancherFlags}}
			off, byList := distro.Switched(f.Running)
			next, where, _ := f.Value("disable")
			off2, _, _ := f.Value("disable-kube-proxy")
			switch {
			case byList && !off:
				r.Message = "kube-proxy is an item of disable, which does nothing: it still runs inside k3s or RKE2. The flag is disable-kube-proxy, on every server"
			case !byList && slices.Contains(strings.Split(next, ","), "kube-proxy") && off2 != "true" && !off:
				r.Message = fmt.Sprintf("kube-proxy is an item of disable in %s, which will do nothing at the next start either: the flag is disable-kube-proxy, on every server", where)
			default:
				return nil
			}
			p.Find(disableList, r)
			return nil
		},
	}
}

// servers finds those of k3s and RKE2 that would give kube-proxy back to the
// agents, while others keep it away. Where no arguments of a server are known
// its files tell.
func servers(p *diag.Pass) {
	var off, on []string
	for node, r := range fact.RancherFlags.Each(p.View()) {
		if r.Err != nil || !r.Value.Server {
			continue
		}
		is, _ := distro.Switched(r.Value.Running)
		if r.Value.Running == nil {
			words, _, _ := r.Value.Value("disable-kube-proxy")
			is = words == "true"
		}
		if is {
			off = append(off, node)
		} else {
			on = append(on, node)
		}
	}
	if len(off) == 0 || len(on) == 0 {
		return
	}
	p.Find(comeBack, diag.Report{Subject: "cluster", Address: "servers", Severity: diag.Warning, Proof: []fact.Named{fact.RancherFlags},
		Message: fmt.Sprintf("disable-kube-proxy is set on %s and not on %s: agents that speak to the latter when they start run kube-proxy again", some(off), some(on))})
}

func absent(err error) bool { return errors.Is(err, source.ErrAbsent) }
