package distro

import (
	"fmt"
	"strings"
)

//go:generate go run ./gen

// Markdown is the page docs/distributions.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Distributions

What is known of each distribution, and how well. A distribution is recognised by its Node objects, in this order; the
report says by what. "Run" means a cluster of that kind was taken through it; "recorded" that evidence which users published is judged
by the tests; "read" that sources and documentation say so, and nothing more.

On managed distributions everything that reads works, and nothing is changed: their control plane would put it back.

Generated from the values by ` + "`go generate ./internal/distro`" + `.

| distribution | kube-proxy is | switched off by | comes back by | API server on each node | how well known |
|---|---|---|---|---|---|
`)
	for _, d := range All() {
		name, api := d.Name, "none of its own"
		if d.Managed {
			name += " (managed)"
		}
		if d.API != "" {
			api = "`" + d.API + "`"
		}
		_, _ = fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", name, d.Proxy, d.Stop, d.Return, api, d.Known)
	}
	b.WriteString(`
The row of kubeadm was run on the lab, whose kube-proxy is a DaemonSet with a ConfigMap as kubeadm makes them; kubeadm itself was not. kubespray is
recognised as kubeadm, which it uses; that it brings kube-proxy back is a rule of its own (` + "`kube-proxy-return`" + `).

That a distribution has no DaemonSet kube-proxy proves nothing: in k3s and microk8s it is part of another process, in RKE2, kOps and GKE a static pod. Whether
it runs is proven for each node: by pods and their owners, by the arguments that k3s and RKE2 write on their Nodes, and by who answers on the ports 10249 and 10256.
`)
	return b.String()
}
