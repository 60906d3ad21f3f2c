package fact

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Facts about kube-proxy.
var (
	// ProxyMode is what answers on a node's port 10249 at /proxyMode.
	ProxyMode = Read(source.ProxyMode, decodeKnock)
	// ProxyHealth is what answers on a node's port 10256 at /healthz.
	ProxyHealth = Read(source.ProxyHealth, decodeKnock)
	// Listeners are the TCP ports that a node listens on.
	Listeners = Read(source.Listeners, decodeListeners)
	// KubeProxy tells whether kube-proxy runs on a node, and how that is known.
	KubeProxy = Define("kube-proxy", true, []Named{Pods, DaemonSets, CiliumConfig, ProxyMode, ProxyHealth, Listeners}, kubeProxy)
)

// The ports of kube-proxy. Cilium can answer on the second one in its place.
const (
	proxyMetricsPort = 10249
	proxyHealthPort  = 10256
)

// Answer is yes, no or not known.
type Answer uint8

// The answers. The zero Answer is the honest one.
const (
	NotKnown Answer = iota
	No
	Yes
)

// String is "yes", "no" or "not known".
func (a Answer) String() string { return [...]string{"not known", "no", "yes"}[a] }

// Proxy is what is known of kube-proxy on one node.
type Proxy struct {
	Running Answer
	As      string   // what it runs as: "pod kube-system/kube-proxy-abc12", "process on port 10249"
	Mode    string   // iptables, ipvs, nftables; "" if it did not say
	Proof   []string // what decides the answer, in words
	Missing error    // why it is not decided, when Running is NotKnown
}

func kubeProxy(v *View) (Proxy, error) {
	p := Proxy{}
	pods, podErr := Pods.From(v)
	for _, pod := range pods {
		if pod.Spec.NodeName != v.Node() || !isKubeProxy(pod.Labels, pod.Name) {
			continue
		}
		name := "pod " + pod.Namespace + "/" + pod.Name
		if static(&pod) {
			name = "static " + name
		}
		if pod.Status.Phase == corev1.PodRunning {
			p.Running, p.As = Yes, name
		}
		p.Proof = append(p.Proof, fmt.Sprintf("%s is %s", name, pod.Status.Phase))
	}
	ports := portsOf(v)
	p.Proof = append(p.Proof, ports.proof...)
	p.Mode = ports.mode
	switch {
	case p.Running == Yes:
	case ports.running == Yes:
		p.Running, p.As = Yes, ports.as
	case ports.running == No:
		p.Running = No
		if podErr == nil {
			p.Proof = append(p.Proof, "no running pod")
		}
	default:
		p.Missing = ports.missing
		if hint := daemonSetHint(v); hint != "" {
			p.Proof = append(p.Proof, hint)
		}
	}
	return p, nil
}

func isKubeProxy(labels map[string]string, name string) bool {
	return labels["k8s-app"] == "kube-proxy" || labels["component"] == "kube-proxy" || strings.HasPrefix(name, "kube-proxy-")
}

// static holds for mirror pods: the kubelet owns them through their Node.
func static(p *corev1.Pod) bool {
	return p.Annotations[corev1.MirrorPodAnnotationKey] != "" ||
		slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Node" })
}

// portsResult is what a node's ports tell of kube-proxy.
type portsResult struct {
	running Answer
	as      string
	mode    string
	proof   []string
	missing error
}

// portsOf decides by what listens in the node's network namespace. Metrics on
// 10249 are kube-proxy's alone; 10256 may be Cilium's, if cilium-config says so.
func portsOf(v *View) portsResult {
	mode, modeErr := ProxyMode.From(v)
	health, healthErr := ProxyHealth.From(v)
	if modeErr == nil && healthErr == nil {
		if r, ok := byKnocking(v, mode, health); ok {
			return r
		}
	}
	listeners, err := Listeners.From(v)
	if err == nil {
		return byListing(v, listeners)
	}
	switch {
	case modeErr != nil:
		return portsResult{missing: modeErr}
	case healthErr != nil:
		return portsResult{missing: healthErr}
	case mode.Refused && health.Open:
		return portsResult{missing: fmt.Errorf("port %d answers and %d does not, and cilium-config does not say that it is Cilium's", proxyHealthPort, proxyMetricsPort)}
	}
	return portsResult{missing: fmt.Errorf("ports %d and %d gave no clear answer: %w", proxyMetricsPort, proxyHealthPort, source.ErrUnreachable)}
}

func byKnocking(v *View, mode, health Knock) (portsResult, bool) {
	switch {
	case mode.Open && validMode(mode.Body):
		return portsResult{running: Yes, as: "process on port 10249", mode: mode.Body,
			proof: []string{"127.0.0.1:10249/proxyMode answers " + mode.Body}}, true
	case mode.Open:
		return portsResult{running: Yes, as: "process on port 10249",
			proof: []string{"port 10249 is open, and /proxyMode gives no mode"}}, true
	case mode.Refused && health.Refused:
		return portsResult{running: No, proof: []string{"ports 10249 and 10256 refuse connections"}}, true
	case mode.Refused && health.Open && ciliumAnswersHealthz(v):
		return portsResult{running: No, proof: []string{"port 10249 refuses connections; 10256 is Cilium's own (kube-proxy-replacement-healthz-bind-address)"}}, true
	}
	return portsResult{}, false
}

func byListing(v *View, ls []Listener) portsResult {
	find := func(port int) (Listener, bool) {
		i := slices.IndexFunc(ls, func(l Listener) bool { return l.Port == port })
		if i < 0 {
			return Listener{}, false
		}
		return ls[i], true
	}
	metrics, hasMetrics := find(proxyMetricsPort)
	health, hasHealth := find(proxyHealthPort)
	for _, l := range ls {
		if l.Process == "kube-proxy" {
			return portsResult{running: Yes, as: fmt.Sprintf("process kube-proxy on port %d", l.Port),
				proof: []string{fmt.Sprintf("kube-proxy listens on port %d", l.Port)}}
		}
	}
	switch {
	case hasMetrics:
		return portsResult{running: Yes, as: "process " + named(metrics) + " on port 10249",
			proof: []string{"something listens on port 10249, kube-proxy's metrics port"}}
	case !hasHealth:
		return portsResult{running: No, proof: []string{"nothing listens on 10249 or 10256"}}
	case health.Process == "cilium-agent" || ciliumAnswersHealthz(v):
		return portsResult{running: No, proof: []string{"nothing listens on 10249; 10256 is Cilium's own"}}
	}
	return portsResult{missing: fmt.Errorf("somebody listens on port %d and nobody on %d, and the list has no names", proxyHealthPort, proxyMetricsPort)}
}

func named(l Listener) string {
	if l.Process == "" {
		return "of unknown name"
	}
	return l.Process
}

func validMode(s string) bool {
	return s == "iptables" || s == "ipvs" || s == "nftables" || s == "kernelspace" || s == "userspace"
}

// ciliumAnswersHealthz holds where cilium-config asks the agent to serve
// kube-proxy's health port.
func ciliumAnswersHealthz(v *View) bool {
	cfg, err := CiliumConfig.From(v)
	addr := cfg["kube-proxy-replacement-healthz-bind-address"]
	return err == nil && strings.HasSuffix(addr, fmt.Sprintf(":%d", proxyHealthPort))
}

func daemonSetHint(v *View) string {
	sets, err := DaemonSets.From(v)
	if err != nil {
		return ""
	}
	for _, ds := range sets {
		if isKubeProxy(ds.Spec.Template.Labels, ds.Name) || ds.Name == "kube-proxy" {
			return fmt.Sprintf("DaemonSet %s/%s has %d of %d pods ready", ds.Namespace, ds.Name,
				ds.Status.NumberReady, ds.Status.DesiredNumberScheduled)
		}
	}
	return ""
}
