package fact

import (
	"errors"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Facts about local redirect policies.
var (
	// LocalRedirects are the CiliumLocalRedirectPolicies. Where the kind is not
	// installed, or a recording has none, there are none.
	LocalRedirects = Define("local-redirects", false, []Named{redirectObjects}, func(v *View) ([]LocalRedirect, error) {
		all, err := redirectObjects.From(v)
		if errors.Is(err, source.ErrAbsent) {
			return nil, nil
		}
		return all, err
	})
	redirectObjects = Read(source.LocalRedirects, objects[LocalRedirect])
	// RedirectList is `lrp list`, which recordings may hold.
	RedirectList = Read(source.RedirectList, func(a source.Artifact) ([]lb.RedirectRow, error) { return cilium.DecodeRedirectList(a.Data) })
	// Redirects is what each policy means on a node.
	Redirects = Define("redirects", true, []Named{LocalRedirects, RedirectList, Services, Pods}, redirects)
)

// LocalRedirect is a CiliumLocalRedirectPolicy as far as it is read here. The
// kind has no package of its own that could be imported without the agent's.
type LocalRedirect struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Frontend struct {
			Address *struct {
				IP    string         `json:"ip"`
				Ports []RedirectPort `json:"toPorts"`
			} `json:"addressMatcher"`
			Service *struct {
				Name      string         `json:"serviceName"`
				Namespace string         `json:"namespace"`
				Ports     []RedirectPort `json:"toPorts"`
			} `json:"serviceMatcher"`
		} `json:"redirectFrontend"`
		Backend struct {
			Selector *metav1.LabelSelector `json:"localEndpointSelector"`
		} `json:"redirectBackend"`
	} `json:"spec"`
}

// RedirectPort is one port that a policy names.
type RedirectPort struct {
	Port     intstr.IntOrString `json:"port"`
	Protocol string             `json:"protocol"`
	Name     string             `json:"name"`
}

// Redirect is a policy on a node: the frontends it should take over, and who
// should answer there.
type Redirect struct {
	Policy    lb.Name
	Service   lb.Name // zero where it matches an address
	Frontends []lb.Address
	// Targets are frontends for which the agent listed a pod; Listed tells that
	// its list was read.
	Targets map[lb.Address]bool
	Listed  bool
	// Local are ready pods of the policy on this node, Elsewhere whether any
	// node has one, ready or not. Both are false in ignorance where PodsRead is.
	Local     bool
	Elsewhere bool
	PodsRead  bool
}

func redirects(v *View) ([]Redirect, error) {
	policies, err := LocalRedirects.From(v)
	if err != nil {
		return nil, err
	}
	rows, listErr := RedirectList.From(v)
	services, _ := Services.From(v)
	pods, podErr := Pods.From(v)
	var out []Redirect
	for i := range policies {
		p := &policies[i]
		r := Redirect{Policy: lb.Name{Namespace: p.Namespace, Name: p.Name}, Listed: listErr == nil, PodsRead: podErr == nil}
		r.Service, r.Frontends = redirectFrontends(p, services)
		r.Local, r.Elsewhere = redirectPods(p, pods, v.Node())
		out = append(out, r)
	}
	for _, row := range rows {
		i := slices.IndexFunc(out, func(r Redirect) bool { return r.Policy == row.Policy })
		if i < 0 {
			out = append(out, Redirect{Policy: row.Policy, Service: row.Service, Listed: true, PodsRead: podErr == nil})
			i = len(out) - 1
		}
		out[i].resolve(row)
	}
	return out, nil
}

// resolve takes in what the agent made of the policy. Without the Service's
// object only the agent knows the frontends.
func (r *Redirect) resolve(row lb.RedirectRow) {
	r.Targets = map[lb.Address]bool{}
	known := len(r.Frontends) > 0
	for _, m := range row.Mappings {
		if !m.Frontend.IP.IsValid() { // 1.18 and 1.19 print none for Services
			for _, f := range r.Frontends {
				if f.Port == m.Frontend.Port && f.Protocol == m.Frontend.Protocol {
					r.Targets[f] = r.Targets[f] || len(m.Targets) > 0
				}
			}
			continue
		}
		r.Targets[m.Frontend] = len(m.Targets) > 0
		if !known {
			r.Frontends = append(r.Frontends, m.Frontend)
		}
	}
}

// redirectFrontends are the addresses that a policy names: one of its own, or
// the ClusterIPs of a Service of its namespace.
func redirectFrontends(p *LocalRedirect, services []corev1.Service) (lb.Name, []lb.Address) {
	var out []lb.Address
	if m := p.Spec.Frontend.Address; m != nil {
		ip, err := netip.ParseAddr(m.IP)
		if err != nil {
			return lb.Name{}, nil
		}
		for _, port := range m.Ports {
			if a, ok := port.at(ip); ok {
				out = append(out, a)
			}
		}
		return lb.Name{}, out
	}
	m := p.Spec.Frontend.Service
	if m == nil {
		return lb.Name{}, nil
	}
	name := lb.Name{Namespace: m.Namespace, Name: m.Name}
	for _, s := range services {
		if s.Namespace != name.Namespace || s.Name != name.Name {
			continue
		}
		ips := s.Spec.ClusterIPs
		if len(ips) == 0 {
			ips = []string{s.Spec.ClusterIP}
		}
		for _, text := range ips {
			ip, err := netip.ParseAddr(text)
			if err != nil {
				continue
			}
			for _, sp := range s.Spec.Ports {
				port := RedirectPort{Port: intstr.FromInt32(sp.Port), Protocol: string(sp.Protocol), Name: sp.Name}
				if a, ok := port.at(ip); ok && (len(m.Ports) == 0 || slices.ContainsFunc(m.Ports, port.same)) {
					out = append(out, a)
				}
			}
		}
	}
	return name, out
}

func (p RedirectPort) at(ip netip.Addr) (lb.Address, bool) {
	protocol, err := lb.ParseProtocol(p.protocol())
	n := p.Port.IntValue()
	if err != nil || n <= 0 || n > 65535 {
		return lb.Address{}, false
	}
	return lb.Address{IP: ip.Unmap(), Port: uint16(n), Protocol: protocol}, true
}

func (p RedirectPort) same(o RedirectPort) bool {
	return p.Port.IntValue() == o.Port.IntValue() && p.protocol() == o.protocol()
}

func (p RedirectPort) protocol() string {
	if p.Protocol == "" {
		return "TCP"
	}
	return strings.ToUpper(p.Protocol)
}

// redirectPods looks for pods of the policy's own namespace: others are never
// redirected to.
func redirectPods(p *LocalRedirect, pods []corev1.Pod, node string) (local, elsewhere bool) {
	selector, err := metav1.LabelSelectorAsSelector(p.Spec.Backend.Selector)
	if err != nil {
		return false, false
	}
	for i := range pods {
		pod := &pods[i]
		if pod.Namespace != p.Namespace || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		elsewhere = true
		local = local || pod.Spec.NodeName == node && readyPod(pod)
	}
	return local, elsewhere
}

func readyPod(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
