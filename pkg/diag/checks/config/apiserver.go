package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// apiServerAddr is the rule about how agents find the API server.
var apiServerAddr = &diag.Rule{
	Name: "apiserver-addr", Severity: diag.Error,
	Title: "agents dial the API server at an address that needs them, or that does not answer",
	Doc: `Without kube-proxy the ClusterIP of default/kubernetes is translated by Cilium alone. An agent that dials it works as long as an agent ran on the node
before, for socket LB stays attached; after a reboot nobody translates it, the agent cannot start, and it cannot start because it does not reach the
API server. So does the init container config, which is the first to hang. The same holds for any address of a Service that Cilium
itself balances, such as a LoadBalancer address in front of the API servers, and for a virtual IP of a kube-vip that itself finds the API server through
the ClusterIP: after all nodes went down it waits for Cilium, and Cilium for it.

The operator is told by an environment of its own. Where it alone dials the ClusterIP it starts only beside an agent that runs, and not at all in a new
cluster, whose agents wait for what it creates.

The address comes from the environment (Helm values k8sServiceHost and k8sServicePort), not from cilium-config. A loopback address is right where the
distribution keeps a proxy there: 6443 and 6444 of k3s and RKE2, 7445 of Talos (KubePrism).

While kube-proxy serves the nodes the ClusterIP works; with the replacement wanted that is a warning, and the first thing to change before kube-proxy goes.`,
	Proof: []string{
		"kubectl -n kube-system get daemonset cilium -o jsonpath='{.spec.template.spec.containers[0].env}'",
		"kubectl -n kube-system get deployment cilium-operator -o jsonpath='{.spec.template.spec.containers[0].env}'",
		"kubectl kpr config --probe-api",
		"kubectl -n kube-system logs POD -c config",
	},
	Remedy: `Set k8sServiceHost and k8sServicePort to an address that needs no Service: a server's, a virtual IP that no Service depends on, a name with several of them, or
k8s.apiServerURLs (1.18 and later). Test it first from every node with --probe-api. Give kube-vip the host's kubeconfig, as its static manifest does, or
KUBERNETES_SERVICE_HOST with an address of the node it runs on.`,
	Sources: []string{"cilium/cilium#26561", "cilium/cilium#35440", "cilium/cilium#28823", "siderolabs/talos#9132", "kube-vip/kube-vip#721"},
}

// APIServerAddr checks how agents find the API server.
func APIServerAddr() *diag.Check {
	return &diag.Check{
		Name:  apiServerAddr.Name,
		Doc:   "the address at which agents dial the API server, and whether it answers",
		Scope: diag.OfCluster,
		Rules: []*diag.Rule{apiServerAddr},
		Wants: []fact.Named{fact.APIAddresses, fact.OperatorAddresses, fact.KubeProxies, fact.CiliumConfig, fact.Status, fact.ConfigLog, fact.APIProbe},
		Run:   judgeAPIServer,
	}
}

func judgeAPIServer(p *diag.Pass) error {
	addresses, err := fact.APIAddresses.From(p.View())
	if err != nil {
		p.Unknown(fact.APIAddresses.ID(), err)
	}
	trap := map[string]bool{} // hosts that are told already
	operators := operators(p)
	for _, a := range addresses {
		if bySet(p, a, operators) {
			trap[a.Host] = true
		}
	}
	for _, o := range operators {
		byOperator(p, o, addresses, trap)
	}
	for _, n := range p.View().Nodes() {
		byNode(p.On(n.Name), trap)
	}
	return nil
}

// bySet judges what a DaemonSet tells its agents. An operator that dials the
// same address has no fault of its own.
func bySet(p *diag.Pass, a fact.APIAddress, operators []fact.OperatorAddress) bool {
	severity, wanted := stance(p)
	r := diag.Report{Subject: "daemonset/" + a.Set, Address: a.Host, Severity: severity, Proof: []fact.Named{fact.APIAddresses}, Next: []string{"kubectl", "kpr", "config", "--probe-api"}}
	too := ""
	if slices.ContainsFunc(operators, func(o fact.OperatorAddress) bool { return o.Host == a.Host }) {
		too = "; so does the operator"
	}
	switch {
	case a.Host == "" && wanted:
		ip := clusterIP(p)
		r.Message = "KUBERNETES_SERVICE_HOST is not set on the agent: it dials the ClusterIP of default/kubernetes" + ip + ", which nobody translates after a reboot without kube-proxy" + too
	case depends(a, wanted, "agents do") != "":
		r.Message = "the agents dial " + depends(a, wanted, "agents do") + too
	case loose(a):
		r.Severity = diag.Warning
		r.Message = fmt.Sprintf("the agents dial %s (%s): no distribution is known to keep a proxy there, so something of your own has to run on every node", a, a.By)
	case len(a.Unset) > 0 && wanted:
		r.Message = fmt.Sprintf("%s has no KUBERNETES_SERVICE_HOST while the others dial %s: it dials the ClusterIP and hangs at the next start without kube-proxy", strings.Join(a.Unset, " and "), a)
	default:
		return false
	}
	p.Find(apiServerAddr, r)
	return true
}

// depends says how an address needs what Cilium itself does, "" if it does not.
// who is who loses by that, with a verb.
func depends(a fact.APIAddress, wanted bool, who string) string {
	switch {
	case a.Host == "":
	case a.Service != "" && (wanted || a.Kind != "ClusterIP"):
		return fmt.Sprintf("%s (%s), the %s of %s, which Cilium itself balances: when its backends go, or a node restarts without kube-proxy, %s not reach the API server and cannot come back", a, a.By, a.Kind, a.Service, who)
	case a.Keeper != "" && wanted:
		return fmt.Sprintf("%s (%s), which %s keeps: it finds the API server through the ClusterIP of default/kubernetes, so after all nodes went down without kube-proxy it waits for Cilium, and Cilium for it", a, a.By, a.Keeper)
	}
	return ""
}

func loose(a fact.APIAddress) bool {
	return a.Loopback() && !slices.Contains([]string{"6443", "6444", "7445"}, a.Port)
}

// stance is severityOf where a kube-proxy that is switched off says as well who
// is to translate.
func stance(p *diag.Pass) (diag.Severity, bool) {
	severity, wanted := severityOf(p)
	proxies, _ := fact.KubeProxies.From(p.View())
	return severity, wanted || p.View().Err(fact.CiliumConfig) != nil && proxies.Disabled
}

// severityOf: while kube-proxy serves, nothing is lost yet. Where the
// replacement is off, kube-proxy is there to stay.
func severityOf(p *diag.Pass) (s diag.Severity, wanted bool) {
	config, _ := fact.CiliumConfig.From(p.View())
	mode := strings.ToLower(config["kube-proxy-replacement"])
	wanted = mode == "true" || mode == "strict" || mode == "partial" || mode == "probe"
	proxies, _ := fact.KubeProxies.From(p.View())
	if proxies.Seen() == fact.Yes {
		return diag.Warning, wanted
	}
	return diag.Error, wanted
}

func clusterIP(p *diag.Pass) string {
	for _, n := range p.View().Nodes() {
		if m := dialled(p.On(n.Name).View()); m.host != "" {
			return " (" + m.host + ")"
		}
	}
	return ""
}

// dial is an address that an agent dialled in vain.
type dial struct {
	host, port, why string
	proof           fact.Named
}

var (
	dialURL  = regexp.MustCompile(`https://(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):(\d+)`)
	dialFail = regexp.MustCompile(`(connection refused|i/o timeout|no route to host|network is unreachable|operation not permitted|no such host|certificate [a-z ]+|context deadline exceeded)`)
)

// dialFailure finds the address that a message says was dialled in vain; host is
// "" where it says no such thing.
func dialFailure(text string) (host, port, why string) {
	url, why := dialURL.FindStringSubmatch(text), dialFail.FindString(text)
	if url == nil || why == "" {
		return "", "", ""
	}
	return strings.Trim(url[1], "[]"), url[2], why
}

// dialled finds a failing address in the log of the init container config, or
// in what the agent says of itself.
func dialled(v *fact.View) dial {
	find := func(text string, proof fact.Named) (dial, bool) {
		host, port, why := dialFailure(text)
		return dial{host, port, why, proof}, host != ""
	}
	lines, _ := fact.ConfigLog.From(v)
	for i := len(lines) - 1; i >= 0; i-- {
		if d, ok := find(lines[i].Message+" "+lines[i].Error(), fact.ConfigLog); ok {
			return d
		}
	}
	if st, _ := fact.Status.From(v); st != nil && (st.Cilium.State == "Failure" || st.Kubernetes.State == "Failure") {
		if d, ok := find(st.Cilium.Message+" "+st.Kubernetes.Message, fact.Status); ok {
			return d
		}
	}
	return dial{}
}

// byNode judges what is known from one node.
func byNode(p *diag.Pass, trap map[string]bool) {
	r := diag.Report{Subject: "node/" + p.Node(), Severity: diag.Error, Next: []string{"kubectl", "kpr", "config", "--probe-api", "--node", p.Node()}}
	probes, _ := fact.APIProbe.From(p.View())
	for _, probe := range probes {
		if !probe.Answers() {
			r.Address, r.Proof = probe.Host, []fact.Named{fact.APIProbe}
			r.Message = fmt.Sprintf("%s does not answer as the cluster's API server from here: %s (%s)", at(probe), probe.Error, probe.By)
			p.Find(apiServerAddr, r)
		}
	}
	d := dialled(p.View())
	if d.host == "" || len(probes) > 0 || trap[d.host] || trap[""] {
		return
	}
	what := ""
	if d.port == "7445" {
		what = " (Talos KubePrism): enable KubePrism in the machine configuration, or give a real endpoint of the API server"
	}
	r.Address, r.Proof = d.host, []fact.Named{d.proof}
	r.Message = fmt.Sprintf("the agent dials %s:%s, which fails: %s%s", d.host, d.port, d.why, what)
	p.Find(apiServerAddr, r)
}

func at(probe agent.APIProbe) string {
	return fact.APIAddress{Host: probe.Host, Port: probe.Port}.String()
}
