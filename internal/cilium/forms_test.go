package cilium

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

var cmpAddr = cmp.Options{
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
}

// common leaves of a value what both the text and the JSON form hold.
func common(value any) any {
	switch v := value.(type) {
	case *agent.Status:
		return commonStatus(v)
	case []lb.Frontend:
		return commonFrontends(v)
	case []lb.TableRow:
		return commonRows(v)
	case agent.Config:
		// -o json prints the options only, the text two settings more.
		delete(v, "MonitorNumPages")
		delete(v, "PolicyEnforcement")
	}
	return value
}

func commonStatus(s *agent.Status) *agent.Status {
	c := *s
	// Text only.
	c.ModulesDegraded, c.ClusterReachable, c.ClusterNodes, c.Unread = 0, 0, 0, nil
	c.PodRanges = nil // of 1.9 the JSON was made here, without this part
	// JSON only: what is excluded from masquerading by iptables.
	if c.Masquerade.Mode == "iptables" {
		c.Masquerade.Exclude = nil
	}
	return &c
}

func commonFrontends(fs []lb.Frontend) []lb.Frontend {
	out := make([]lb.Frontend, len(fs))
	for i, f := range fs {
		out[i] = lb.Frontend{Address: f.Address, ID: f.ID, Type: f.Type}
		for _, b := range f.Backends {
			out[i].Backends = append(out[i].Backends, lb.Backend{Address: b.Address, State: b.State})
		}
	}
	return out
}

func commonRows(rows []lb.TableRow) []lb.TableRow {
	out := slices.Clone(rows)
	for i := range out {
		out[i].Since = "" // an age in one form, a time in the other
		var bs []lb.Backend
		for _, b := range out[i].Backends {
			bs = append(bs, lb.Backend{Address: b.Address})
		}
		out[i].Backends = bs
		out[i].RedirectTo = strings.TrimSpace(out[i].RedirectTo)
	}
	return out
}
