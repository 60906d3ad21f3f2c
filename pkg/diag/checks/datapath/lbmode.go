package datapath

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// lbMode is the rule about how answers find their way back.
var lbMode = &diag.Rule{
	Name: "lb-mode", Severity: diag.Warning,
	Title: "the load balancing mode asks more of the network than this one may give",
	Doc: `In DSR mode, and for TCP in hybrid mode, the backend's node answers the client itself, with the address of the node
that the client had dialled as the source. A network that knows which addresses a machine may send from drops such
answers: the source/destination check and the security groups of AWS, the anti-spoofing of Azure, Google Cloud and OpenStack,
reverse path filters of routers. NodePorts then work on the nodes that run a backend and nowhere else, though all
three layers agree on every node.

This can be warned of and not proven from inside the cluster. Where the nodes are known to be of no cloud nothing is said.
DSR by IP options also needs native routing and loses the option at devices that drop packets with options; over a tunnel it
needs the Geneve dispatch.`,
	Proof: []string{
		"kubectl kpr exec NODE -- cilium-dbg status --verbose",
		"kubectl kpr trace svc/NAME -n NAMESPACE --from outside",
		"kubectl get nodes -o custom-columns=NAME:.metadata.name,PROVIDER:.spec.providerID",
	},
	Remedy:  `Use loadBalancer.mode=snat, or allow nodes to send with each other's addresses (on AWS: turn off the source/destination check).`,
	Sources: []string{"cilium/cilium#27700"},
}

// LBMode checks the mode against the cloud and the tunnel.
func LBMode() *diag.Check {
	return &diag.Check{
		Name:  lbMode.Name,
		Doc:   "DSR and hybrid mode against the cloud and the tunnel",
		Scope: diag.OfCluster,
		Rules: []*diag.Rule{lbMode},
		Wants: []fact.Named{fact.Status, fact.Nodes},
		Run:   judgeLBMode,
	}
}

func judgeLBMode(p *diag.Pass) error {
	v := p.View()
	modes := map[string][]string{} // what is said of nodes
	var unread error
	seen := false
	for node, st := range fact.Status.Each(v) {
		if st.Value == nil {
			unread = cmp.Or(unread, st.Err)
			continue
		}
		if seen = true; st.Value.LBMode != "DSR" && st.Value.LBMode != "Hybrid" {
			continue
		}
		modes[st.Value.LBMode] = append(modes[st.Value.LBMode], node)
		if st.Value.NetworkRouting == "Tunnel" && st.Value.DSRDispatch != "" && st.Value.DSRDispatch != "Geneve" {
			p.On(node).Find(lbMode, diag.Report{
				Subject: "node/" + node, Address: "dispatch", Severity: diag.Warning, Proof: []fact.Named{fact.Status},
				Message: fmt.Sprintf("mode %s with dispatch %q over a tunnel: only the Geneve dispatch crosses one", st.Value.LBMode, st.Value.DSRDispatch),
			})
		}
	}
	if !seen && unread != nil {
		p.Unknown(fact.Status.ID(), unread)
		return nil
	}
	cloud, known := cloudOf(v)
	if known && cloud == "" {
		return nil
	}
	for _, mode := range slices.Sorted(maps.Keys(modes)) {
		nodes := modes[mode]
		what := map[string]string{"DSR": "answers", "Hybrid": "TCP answers"}[mode]
		where := "if this is a cloud (the nodes tell no provider), its source check"
		if cloud != "" {
			where = cloud + ": its source check"
		}
		p.Find(lbMode, diag.Report{
			Subject: "cluster", Address: strings.ToLower(mode), Severity: diag.Warning, Proof: []fact.Named{fact.Nodes},
			Message: fmt.Sprintf("mode %s on %s: %s leave a backend's node with another node's address as source; %s or security groups may drop them, and NodePorts then work only on nodes that run a backend",
				mode, words.Count(len(nodes), "node"), what, where),
		})
	}
	return nil
}

// clouds are the providers that check the source of what a machine sends, by
// the scheme of a node's providerID.
var clouds = map[string]string{
	"aws": "AWS", "azure": "Azure", "gce": "Google Cloud", "openstack": "OpenStack", "alicloud": "Alibaba Cloud",
	"hcloud": "Hetzner Cloud", "digitalocean": "DigitalOcean", "ibm": "IBM Cloud", "oci": "Oracle Cloud", "linode": "Linode", "tencentcloud": "Tencent Cloud",
}

// cloudOf names the cloud of the nodes; known is false where nothing tells.
func cloudOf(v *fact.View) (cloud string, known bool) {
	nodes, err := fact.Nodes.From(v)
	if err != nil || len(nodes) == 0 {
		return "", false
	}
	for i := range nodes {
		scheme, _, _ := strings.Cut(nodes[i].Spec.ProviderID, ":")
		if name := clouds[scheme]; name != "" {
			return name, true
		}
	}
	return "", true
}

// some lists the first of many names.
func some(all []string) string {
	slices.Sort(all)
	if len(all) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:3], ", "), len(all)-3)
	}
	return strings.Join(all, ", ")
}
