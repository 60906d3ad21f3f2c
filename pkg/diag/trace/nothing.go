package trace

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// nothingAt is the verdict about an address at which there is no frontend and
// no backend.
func (w *world) nothingAt(t Target) *Verdict {
	v := &Verdict{State: Nobody}
	if err := w.blind(); err != nil {
		v.State, v.Text = Unknown, fmt.Sprintf("whether %s is a frontend is not known: %v", t, err)
		return v
	}
	if owner, ports, wild := w.portsAt(t.IP); len(ports) > 0 {
		v.Layer = API
		v.Text = fmt.Sprintf("nobody serves %s: %s is %s, which has %s there", t, t.IP, owner, listed(ports))
		if wild {
			v.Text += "; the wildcard row of the address drops all other ports"
		}
		return v
	}
	if p, ok := w.pods[t.IP]; ok {
		v.State, v.Text = Excluded, fmt.Sprintf("%s is pod %s and behind no Service on that port: there is nothing to balance", t, p.name)
		return v
	}
	if n, ok := w.nodeOf[t.IP]; ok {
		if v.Text = fmt.Sprintf("%s is an address of node %s, and no NodePort or host port", t, n); t.PortNumber == 0 {
			v.State, v.Text = Excluded, fmt.Sprintf("%s is an address of node %s and no Service's own; name a port to trace a NodePort", t, n)
		}
		return v
	}
	v.Text = fmt.Sprintf("no frontend, endpoint or node here has %s", t)
	return v
}

// blind is why an address that was not found may be there all the same.
func (w *world) blind() error {
	if w.servicesErr != nil {
		return w.servicesErr
	}
	for _, n := range w.nodes {
		if n.desiredErr != nil {
			return n.desiredErr
		}
	}
	return nil
}

// portsAt lists the ports of the frontends on an address.
func (w *world) portsAt(ip netip.Addr) (owner string, ports []string, wildcard bool) {
	for _, n := range w.nodes {
		for _, table := range []lb.Table{n.desired, n.agent, n.kernel} {
			for _, r := range table.Rows {
				switch {
				case r.Address.IP != ip || r.Expansion:
				case r.Wildcard:
					wildcard = true
				default:
					if r.Service != (lb.Name{}) {
						owner = r.Type + " of " + r.Service.String()
					}
					ports = append(ports, fmt.Sprintf("%d/%s", r.Address.Port, r.Address.Protocol))
				}
			}
		}
	}
	slices.Sort(ports)
	if owner == "" {
		owner = "a frontend of no Service that is known"
	}
	return owner, slices.Compact(ports), wildcard
}
