package fact

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// VirtualIPs are the addresses of API servers that kube-vip keeps.
var VirtualIPs = Define("virtual-ips", false, []Named{DaemonSets, Pods}, virtualIPs)

// VirtualIP is an address that kube-vip holds on the node that leads. Without
// one of its own ways to the API server it asks the ClusterIP of
// default/kubernetes who leads; where Cilium, which translates that, waits for
// the address in turn, neither starts after all nodes went down.
type VirtualIP struct {
	Subject   string // "daemonset/NAMESPACE/NAME" or "pod/NAMESPACE/NAME"
	Addresses []string
	ByService bool // it needs a Service to find the API server
}

func virtualIPs(v *View) ([]VirtualIP, error) {
	sets, setErr := DaemonSets.From(v)
	pods, podErr := Pods.From(v)
	if setErr != nil && podErr != nil {
		return nil, setErr
	}
	var out []VirtualIP
	add := func(subject string, spec *corev1.PodSpec) {
		if vip, ok := virtualIPOf(spec); ok {
			vip.Subject = subject
			out = append(out, vip)
		}
	}
	for i := range sets {
		add("daemonset/"+sets[i].Namespace+"/"+sets[i].Name, &sets[i].Spec.Template.Spec)
	}
	for i := range pods {
		if _, mirror := pods[i].Annotations[corev1.MirrorPodAnnotationKey]; mirror {
			add("pod/"+pods[i].Namespace+"/"+pods[i].Name, &pods[i].Spec)
		}
	}
	return out, nil
}

// virtualIPOf follows kube-vip's pkg/manager: a file admin.conf goes first, then
// one in the home folder, then the pod's own service account. Election by etcd
// needs no API server.
func virtualIPOf(spec *corev1.PodSpec) (VirtualIP, bool) {
	vip := VirtualIP{ByService: true}
	for _, c := range spec.Containers {
		if !strings.HasPrefix(path.Base(c.Image), "kube-vip") && !strings.HasPrefix(c.Name, "kube-vip") {
			continue
		}
		for _, e := range c.Env {
			switch e.Name {
			case "address", "vip_address":
				if e.Value != "" && !slices.Contains(vip.Addresses, e.Value) {
					vip.Addresses = append(vip.Addresses, e.Value)
				}
			case "KUBERNETES_SERVICE_HOST":
				vip.ByService = vip.ByService && e.Value == "" && e.ValueFrom == nil
			}
		}
		for _, m := range c.VolumeMounts {
			if m.MountPath == "/etc/kubernetes" || strings.HasSuffix(m.MountPath, "/admin.conf") || strings.HasSuffix(strings.TrimSuffix(m.MountPath, "/config"), "/.kube") {
				vip.ByService = false
			}
		}
		for _, a := range c.Args {
			if strings.TrimLeft(a, "-") == "leaderElectionType=etcd" {
				vip.ByService = false
			}
		}
	}
	return vip, len(vip.Addresses) > 0
}
