package fact

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Resolvers are node-local DNS caches that a node should have.
var Resolvers = Define("node-local-resolvers", true, []Named{DaemonSets, Pods}, resolvers)

// Resolver is a DNS cache that runs on each node and binds addresses of its own.
type Resolver struct {
	Subject     string // "daemonset/NAMESPACE/NAME", or the pod where no DaemonSet was seen
	HostNetwork bool
	LinkLocal   []netip.Addr
	Others      []netip.Addr // usually the ClusterIP of the DNS Service
}

// resolvers go by the flag that node-local-dns is started with, as nothing
// else tells which addresses it binds.
func resolvers(v *View) ([]Resolver, error) {
	sets, setErr := DaemonSets.From(v)
	pods, podErr := Pods.From(v)
	if setErr != nil && podErr != nil {
		return nil, podErr
	}
	var out []Resolver
	for i := range sets {
		ds := &sets[i]
		if r, ok := resolverOf(&ds.Spec.Template.Spec); ok {
			r.Subject = "daemonset/" + ds.Namespace + "/" + ds.Name
			out = append(out, r)
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	for i := range pods {
		p := &pods[i]
		if p.Spec.NodeName != v.Node() {
			continue
		}
		if r, ok := resolverOf(&p.Spec); ok {
			r.Subject = "pod/" + p.Namespace + "/" + p.Name
			out = append(out, r)
		}
	}
	return out, nil
}

func resolverOf(spec *corev1.PodSpec) (Resolver, bool) {
	r := Resolver{HostNetwork: spec.HostNetwork}
	for _, c := range spec.Containers {
		words := slices.Concat(c.Command, c.Args)
		for i, w := range words {
			key, value, ok := strings.Cut(w, "=")
			if strings.TrimLeft(key, "-") != "localip" || !strings.HasPrefix(key, "-") {
				continue
			}
			if !ok && i+1 < len(words) {
				value = words[i+1]
			}
			for text := range strings.SplitSeq(value, ",") {
				ip, err := netip.ParseAddr(strings.TrimSpace(text))
				switch {
				case err != nil:
				case ip.IsLinkLocalUnicast():
					r.LinkLocal = append(r.LinkLocal, ip.Unmap())
				default:
					r.Others = append(r.Others, ip.Unmap())
				}
			}
		}
	}
	return r, len(r.LinkLocal)+len(r.Others) > 0
}
