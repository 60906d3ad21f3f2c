package report

import (
	"fmt"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// nodeOf gathers what is known of the node that v looks from.
func nodeOf(v *fact.View) Node {
	n := Node{Name: v.Node(), Agent: Agent{State: fact.LifeUnknown.String()}}
	if a, err := fact.AgentOf.From(v); err == nil {
		n.Agent = Agent{State: a.Life.String(), Pod: a.Pod, Restarts: a.Restarts, Reason: a.Reason}
	} else {
		n.Unknown = append(n.Unknown, joinErr(err))
	}
	if st, err := fact.Status.From(v); st != nil {
		n.Agent.Health, n.Agent.Message, n.Agent.Version = st.Cilium.State, st.Cilium.Message, st.Version
		n.KPR, n.Masquerade, n.Routing = kprOf(st), masqueradeOf(st), routingOf(st)
	} else {
		n.Unknown = append(n.Unknown, joinErr(err))
	}
	if api, err := fact.APIServer.From(v); err == nil {
		n.APIServer = api.String()
	} else {
		n.Unknown = append(n.Unknown, joinErr(err))
	}
	proxy, _ := fact.KubeProxy.From(v)
	n.KubeProxy = KubeProxy{Running: proxy.Running.String(), As: proxy.As, Mode: proxy.Mode, Proof: proxy.Proof}
	if proxy.Missing != nil {
		n.KubeProxy.Missing = joinErr(proxy.Missing)
	}
	return n
}

func word(s agent.Switch) string {
	if s == agent.NotTold {
		return ""
	}
	return s.String()
}

func kprOf(st *agent.Status) *KPR {
	if st.Mode == "" {
		return nil
	}
	k := &KPR{
		Mode: string(st.Mode), Said: st.ModeSaid, SocketLB: word(st.SocketLB), DirectRouting: st.DirectRouting,
		LBMode: st.LBMode, DSRDispatch: st.DSRDispatch, Algorithm: st.Algorithm, XDP: st.XDP,
		NodePort: word(st.NodePort), LoadBalancer: word(st.LoadBalancer), ExternalIPs: word(st.ExternalIPs),
		HostPort: word(st.HostPort), Affinity: word(st.Affinity),
	}
	if st.SocketLB == agent.On {
		switch st.SocketLBHostOnly {
		case agent.On:
			k.Coverage = "Hostns-only"
		case agent.Off:
			k.Coverage = "Full"
		}
	}
	if st.NodePortMax > 0 {
		k.NodePortRange = fmt.Sprintf("%d-%d", st.NodePortMin, st.NodePortMax)
	}
	for _, d := range st.Devices {
		dev := Device{Name: d.Name, Addresses: []string{}}
		for _, a := range d.Addresses {
			dev.Addresses = append(dev.Addresses, a.String())
		}
		k.Devices = append(k.Devices, dev)
	}
	return k
}

func masqueradeOf(st *agent.Status) *Masquerade {
	if st.Masquerade.Mode == "" {
		return nil
	}
	m := st.Masquerade
	return &Masquerade{Mode: m.Mode, IPv4: word(m.IPv4), IPv6: word(m.IPv6), Devices: m.Devices}
}

func routingOf(st *agent.Status) *Routing {
	if st.NetworkRouting == "" && st.HostRouting == "" {
		return nil
	}
	return &Routing{Network: st.NetworkRouting, Tunnel: st.TunnelProtocol, Host: st.HostRouting}
}
