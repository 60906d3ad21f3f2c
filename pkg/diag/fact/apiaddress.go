package fact

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
)

// APIAddresses are the addresses that the agents' DaemonSets make agents dial
// the API server at, one for each set.
var APIAddresses = Define("api-addresses", false, []Named{AgentSets, CiliumConfig, Services, VirtualIPs}, apiAddresses)

// APIAddress is where the agents of a DaemonSet find the API server.
type APIAddress struct {
	Set        string // "kube-system/cilium"
	Host, Port string // "" where nothing is set
	By         string // what sets it: "environment of cilium-agent", a key
	// Service is the one that the address belongs to, "" if none is known, and
	// Kind what the address is there: "ClusterIP", "LoadBalancer address" or
	// "externalIP". Without a Host it is default/kubernetes.
	Service, Kind string
	// Unset are containers of the set that have no address while another has.
	Unset []string
	// Keeper is who holds the address on a node and finds the API server through
	// a Service itself, "" if nobody is known to: see VirtualIP.
	Keeper string
}

// Loopback holds for addresses that a proxy on the node answers.
func (a APIAddress) Loopback() bool {
	ip, err := netip.ParseAddr(a.Host)
	return a.Host == "localhost" || err == nil && ip.IsLoopback()
}

// String is HOST:PORT.
func (a APIAddress) String() string {
	if a.Port == "" {
		return a.Host
	}
	return net.JoinHostPort(a.Host, a.Port)
}

func apiAddresses(v *View) ([]APIAddress, error) {
	sets, err := AgentSets.From(v)
	if err != nil {
		return nil, err
	}
	config, _ := CiliumConfig.From(v)
	services, _ := Services.From(v)
	vips, _ := VirtualIPs.From(v)
	var out []APIAddress
	for i := range sets {
		a := addressOf(&sets[i])
		a.settle(config, services, vips)
		out = append(out, a)
	}
	return out, nil
}

// settle lets keys of cilium-config go before the environment, as agents and
// operator do, and finds who the address belongs to.
func (a *APIAddress) settle(config map[string]string, services []corev1.Service, vips []VirtualIP) {
	for _, key := range []string{"k8s-api-server-urls", "k8s-api-server", "k8s-kubeconfig-path"} {
		if value := config[key]; value != "" {
			a.By, a.Host, a.Port = key, value, ""
			a.Unset = nil
		}
	}
	a.Service, a.Kind = owner(services, a.Host)
	for _, vip := range vips {
		if vip.ByService && slices.Contains(vip.Addresses, a.Host) {
			a.Keeper = vip.Subject
		}
	}
}

// addressOf reads the environment of the agent and of the init containers that
// need the API server.
func addressOf(ds *appsv1.DaemonSet) APIAddress {
	a := APIAddress{Set: ds.Namespace + "/" + ds.Name}
	spec := ds.Spec.Template.Spec
	for _, c := range slices.Concat(spec.Containers, spec.InitContainers) {
		if c.Name != "cilium-agent" && c.Name != "config" {
			continue
		}
		host, port := cilium.ServiceHost(c)
		if host == "" {
			a.Unset = append(a.Unset, c.Name)
			continue
		}
		if a.Host == "" {
			a.Host, a.Port, a.By = host, port, "environment of "+c.Name
		}
	}
	if a.Host == "" {
		a.Unset = nil
	}
	return a
}

func owner(services []corev1.Service, host string) (name, kind string) {
	for i := range services {
		s := &services[i]
		full := s.Namespace + "/" + s.Name
		switch {
		case host == "" && full == "default/kubernetes":
			return full, "ClusterIP"
		case host == "":
		case slices.Contains(append(slices.Clone(s.Spec.ClusterIPs), s.Spec.ClusterIP), host),
			strings.HasPrefix(host, s.Name+"."+s.Namespace+".svc"):
			return full, "ClusterIP"
		case slices.Contains(s.Spec.ExternalIPs, host):
			return full, "externalIP"
		case slices.ContainsFunc(s.Status.LoadBalancer.Ingress, func(in corev1.LoadBalancerIngress) bool { return in.IP == host }):
			return full, "LoadBalancer address"
		}
	}
	if host == "" {
		return "default/kubernetes", "ClusterIP"
	}
	return "", ""
}
