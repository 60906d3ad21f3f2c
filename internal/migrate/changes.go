package migrate

import "net"

// Change is one sub-step of stage 1.
type Change struct {
	Name   string         `json:"name"`
	Doc    string         `json:"-"`
	Risk   string         `json:"-"`
	Values map[string]any `json:"values"` // by path in the chart's values
	Want   Want           `json:"want"`   // what every agent says afterwards
}

// Want is what an agent has to say of itself; an empty field is not asked.
type Want struct {
	Mode        string `json:"mode,omitempty"`        // "True"
	Masquerade  string `json:"masquerade,omitempty"`  // "BPF"
	HostRouting string `json:"hostRouting,omitempty"` // "BPF"
	APIServer   string `json:"apiServer,omitempty"`   // "HOST:PORT"
}

const restartRisk = "agents restart node by node; pods keep their connections, but while a node's agent restarts its endpoints do not change and new pods wait"

// Changes are the sub-steps, in the order in which each is safe: the address
// first, since an agent that replaces kube-proxy cannot be reached through it.
func (in *Inputs) Changes() []Change {
	var all []Change
	t := in.Target
	if t.APIHost != "" {
		all = append(all, Change{
			Name: "api-address", Doc: "give the agents an address of the API server that needs no Service: " + t.APIHost + " port " + t.APIPort, Risk: restartRisk,
			Values: map[string]any{"k8sServiceHost": t.APIHost, "k8sServicePort": t.APIPort}, Want: Want{APIServer: net.JoinHostPort(t.APIHost, t.APIPort)},
		})
	}
	if on(t.Replace) {
		all = append(all, Change{
			Name: "replace", Doc: "let every agent replace kube-proxy, which stays for now", Risk: restartRisk + "; established connections through a Service can break once as they change hands",
			Values: map[string]any{"kubeProxyReplacement": "true"}, Want: Want{Mode: "True"},
		})
	}
	if on(t.Masquerade) {
		all = append(all, Change{
			Name: "masquerade", Doc: "masquerade in BPF instead of iptables", Risk: restartRisk + "; the source address that the outside sees can change",
			Values: map[string]any{"bpf.masquerade": true}, Want: Want{Masquerade: "BPF"},
		})
	}
	if on(t.HostRouting) {
		all = append(all, Change{
			Name: "host-routing", Doc: "route pods' packets past the host's netfilter", Risk: restartRisk + "; rules of the host's own firewall no longer see pods' packets",
			Values: map[string]any{"bpf.hostLegacyRouting": false}, Want: Want{HostRouting: "BPF"},
		})
	}
	if in.Combine && len(all) > 1 {
		return []Change{combined(all)}
	}
	return all
}

// combined is all changes in one roll.
func combined(all []Change) Change {
	one := Change{Name: "take-over", Doc: "all of stage 1 in one roll of the agents", Risk: all[len(all)-1].Risk, Values: map[string]any{}}
	for _, c := range all {
		for k, v := range c.Values {
			one.Values[k] = v
		}
		one.Want = one.Want.and(c.Want)
	}
	return one
}

func (w Want) and(o Want) Want {
	for _, f := range []struct{ to, from *string }{
		{&w.Mode, &o.Mode}, {&w.Masquerade, &o.Masquerade}, {&w.HostRouting, &o.HostRouting}, {&w.APIServer, &o.APIServer},
	} {
		if *f.from != "" {
			*f.to = *f.from
		}
	}
	return w
}

// missing says what an agent lacks of what is wanted, "" if nothing.
func (w Want) missing(said Want) string {
	for _, f := range []struct{ name, want, said string }{
		{"KPR", w.Mode, said.Mode}, {"masquerading", w.Masquerade, said.Masquerade},
		{"host routing", w.HostRouting, said.HostRouting}, {"API server", w.APIServer, said.APIServer},
	} {
		if f.want != "" && f.want != f.said {
			said := f.said
			if said == "" {
				said = "not told"
			}
			return f.name + " is " + said + ", want " + f.want
		}
	}
	return ""
}

// nested turns paths into the tree of a values file.
func nested(values map[string]any) map[string]any {
	out := map[string]any{}
	for path, v := range values {
		put(out, path, v)
	}
	return out
}
