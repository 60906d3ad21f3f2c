package service

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// lack is what the API itself leaves a Service without: frontends that no
// usable endpoint is behind, whatever the agents do.
type lack struct {
	service lb.Name
	rows    []lb.Row // those that lack, in order of address
	ready   bool     // other frontends of the Service have endpoints
}

// lacks finds the Services with frontends that have no endpoint for one of the
// causes, before and after the agents were asked. Frontends that are answered
// by other means are left out: by Envoy or a local redirect, by backends of
// another cluster.
func lacks(v *fact.View, causes ...lb.Cause) ([]lack, error) {
	index, err := fact.Index.From(v)
	if err != nil {
		return nil, err
	}
	node := lb.NodeView{}
	if cfg, err := fact.CiliumConfig.From(v); err == nil {
		node.ProxyName = cfg["k8s-service-proxy-name"]
	}
	first := index.Desired(node, lb.Capabilities{})
	again := first
	if after, err := fact.IndexAfter.From(v); err == nil {
		again = after.Desired(node, lb.Capabilities{})
	}
	at := map[lb.Name]int{}
	ready := map[lb.Name]bool{}
	var out []lack
	for _, r := range first.Rows {
		if r.Required() {
			ready[r.Service] = true
			continue
		}
		then, ok := again.Find(r.Address)
		if !ok || then.Required() || r.Type == "HostPort" || !slices.Contains(causes, r.Cause) || answered(v, r) {
			continue
		}
		i, ok := at[r.Service]
		if !ok {
			i = len(out)
			at[r.Service] = i
			out = append(out, lack{service: r.Service})
		}
		out[i].rows = append(out[i].rows, r)
	}
	for i := range out {
		out[i].ready = ready[out[i].service]
	}
	slices.SortFunc(out, func(a, b lack) int { return cmp.Compare(a.service.String(), b.service.String()) })
	return out, nil
}

// answered holds where an agent has somebody for a frontend whom the API does
// not tell of. What stale backends answer does not count.
func answered(v *fact.View, want lb.Row) bool {
	seen := false
	for _, t := range fact.Held.Each(v) {
		if t.Err != nil {
			continue
		}
		seen = true
		r, ok := find(t.Value, want.Address)
		if ok && (r.Redirect != lb.Direct || want.Global && len(r.Entries) > 0 || crossed(want.Address, r)) {
			return true
		}
	}
	return want.Global && !seen
}

// crossed holds for backends of the other family, as NAT46 and NAT64 have them.
func crossed(a lb.Address, r lb.Row) bool {
	return slices.ContainsFunc(r.Entries, func(e lb.Entry) bool {
		return e.Address.IP.IsValid() && e.Address.IP.Is4() != a.IP.Is4()
	})
}

// frontends names what clients dial: "203.0.113.70:443/TCP, NodePort 32443/TCP".
func (l lack) frontends() string {
	var names []string
	for _, r := range l.rows {
		if s := dialled(r.Address); !slices.Contains(names, s) {
			names = append(names, s)
		}
	}
	return listed(names)
}

// dialled names a frontend as clients know it.
func dialled(a lb.Address) string {
	a.Scope = lb.External
	if a.Surrogate() {
		return fmt.Sprintf("NodePort %d/%s", a.Port, a.Protocol)
	}
	return a.String()
}

// outside holds where clients from outside the cluster have a way in.
func (l lack) outside() bool {
	return slices.ContainsFunc(l.rows, func(r lb.Row) bool { return r.Type != "ClusterIP" })
}

// reasons gives the different reasons of the rows, in order.
func (l lack) reasons() []string {
	var out []string
	for _, r := range l.rows {
		if !slices.Contains(out, r.Reason) {
			out = append(out, r.Reason)
		}
	}
	return out
}

// report is the finding about a lack.
func (l lack) report(severity diag.Severity, message string) diag.Report {
	return diag.Report{
		Subject: "service/" + l.service.String(), Severity: severity, Message: message,
		Proof: []fact.Named{fact.Services, fact.EndpointSlices},
		Next:  []string{"kubectl", "get", "endpointslices", "-n", l.service.Namespace, "-l", "kubernetes.io/service-name=" + l.service.Name},
	}
}

// object finds the Service itself.
func (l lack) object(v *fact.View) *corev1.Service {
	all, _ := fact.Services.From(v)
	for i := range all {
		if all[i].Namespace == l.service.Namespace && all[i].Name == l.service.Name {
			return &all[i]
		}
	}
	return &corev1.Service{}
}

// selector spells a Service's selector: "app=gw,tier=front".
func selector(s *corev1.Service) string {
	var words []string
	for k, v := range s.Spec.Selector {
		words = append(words, k+"="+v)
	}
	slices.Sort(words)
	return strings.Join(words, ",")
}

// ofAPI is what the checks that judge the API's objects alone have in common.
// The agents are looked at only for what the API does not tell.
func ofAPI(rule *diag.Rule, doc string, run func(*diag.Pass) error, more ...fact.Named) *diag.Check {
	return &diag.Check{
		Name: rule.Name, Doc: doc, Scope: diag.OfCluster, Rules: []*diag.Rule{rule},
		Needs: []fact.Named{fact.Index},
		Wants: append([]fact.Named{fact.IndexAfter, fact.CiliumConfig, fact.Held, fact.Services}, more...),
		Run:   run,
	}
}
