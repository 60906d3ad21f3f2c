package states

import "github.com/kubectl-kpr/kubectl-kpr/test/lab/cluster"

// onKPR is the base of every fault: KPR on, kube-proxy gone without a trace.
func onKPR() cluster.Base { return cluster.Base{KPR: true} }

func bases() []State {
	return []State{
		{Name: "kpr", Doc: "KPR on, kube-proxy gone, none of its rules left", Base: onKPR()},
		{Name: "kube-proxy", Doc: "KPR off, kube-proxy in iptables mode", Base: cluster.Base{KubeProxy: "iptables"}},
		{Name: "kube-proxy-nft", Doc: "KPR off, kube-proxy in nftables mode", Base: cluster.Base{KubeProxy: "nftables"}},
		{Name: "kpr-with-kube-proxy", Doc: "KPR on, kube-proxy still runs in iptables mode", Base: cluster.Base{KPR: true, KubeProxy: "iptables"},
			Expect: Expect{Exit: 0, Rule: "kube-proxy-running"}},
		{Name: "kpr-residue", Doc: "KPR on, kube-proxy's DaemonSet deleted, its iptables rules left", Base: cluster.Base{KPR: true, Residue: "iptables"},
			Expect: Expect{Exit: 0, Rule: "kube-chains"}},
		{Name: "kpr-residue-nft", Doc: "KPR on, kube-proxy's DaemonSet deleted, its nftables tables left", Base: cluster.Base{KPR: true, Residue: "nftables"},
			Expect: Expect{Exit: 0, Rule: "nft-table", Flags: []string{"--host"}}},
	}
}
