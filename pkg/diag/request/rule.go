package request

import "github.com/kubectl-kpr/kubectl-kpr/pkg/diag"

// Contradicts is the rule about requests that do not do what the layers say.
var Contradicts = &diag.Rule{
	Name: "probe-contradicts-trace", Severity: diag.Error,
	Title: "a real request does something else than API, agent and map say",
	Doc: `A trace reads what the API wants, what the agent believes and what the node's BPF maps hold, and says from it what becomes of a connection. A probe makes the connection. Where
the two differ, the fault is in what a trace does not read: the way to the backend or back (routes, MTU, a firewall, another node's rules), the backend itself, programs that are not attached, or
netfilter, which translates what Cilium was to translate.

A policy that refuses is no contradiction: a trace follows translation and not policy, and the denial is told for what it is (policy-denied). A probe that is answered although the trace has nobody to
serve says that somebody else translates: kube-proxy beside Cilium, rules that it left, or a proxy in the pod.`,
	Proof: []string{
		"kubectl kpr probe svc/NAME --from node/NODE --tries 20",
		"kubectl kpr trace svc/NAME --from node/NODE",
		"kubectl kpr exec NODE -- timeout 30 cilium-dbg monitor --type drop",
	},
	Remedy: `Dial a backend's own address from the same place: where that fails too, Services are not the cause. Then look at the mechanism that the probe names: it must be the one that trace has for
this client. kubectl kpr check --host shows rules that kube-proxy left and programs that are not attached.`,
	Sources: []string{"cilium/cilium#27061", "cilium/cilium#35440"},
}

// Rules lists the rules of probes.
func Rules() []*diag.Rule { return []*diag.Rule{Contradicts} }
