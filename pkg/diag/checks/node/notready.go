package node

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// notReady is the rule about endpoints on nodes that are not ready.
var notReady = &diag.Rule{
	Name: "node-not-ready", Severity: diag.Warning,
	Title: "endpoints that count as ready are on a node that is not",
	Doc: `When a kubelet stops reporting, its node becomes NotReady after 40 seconds, and its pods' endpoints are taken out shortly
after. Until then, and for good where something keeps them (pods that tolerate it, endpoints made by hand, a controller that is down),
Services go on to send there. Whether these pods still answer cannot be told from here: a node may be cut off from the API
server alone.`,
	Proof: []string{
		"kubectl get nodes",
		"kubectl get endpointslices -A -o wide",
	},
	Remedy:  `Look at the node: kubelet, disk, network. If it is gone for good, delete the Node object; its endpoints go with it.`,
	Settles: true,
}

// NotReady checks that no ready endpoint is on a node that is not ready.
func NotReady() *diag.Check {
	return &diag.Check{
		Name:  notReady.Name,
		Doc:   "ready endpoints on nodes that are not ready",
		Scope: diag.OfCluster,
		Rules: []*diag.Rule{notReady},
		Needs: []fact.Named{fact.Nodes, fact.EndpointSlices},
		Applies: func(v *fact.View) string {
			if _, err := fact.Nodes.From(v); errors.Is(err, source.ErrAbsent) {
				return "the Node objects were not recorded"
			}
			return ""
		},
		Run: judgeReady,
	}
}

func judgeReady(p *diag.Pass) error {
	nodes, _ := fact.Nodes.From(p.View())
	slicesOf, _ := fact.EndpointSlices.From(p.View())
	for i := range nodes {
		reason := whyNotReady(&nodes[i])
		if reason == "" {
			continue
		}
		services, count := map[string]bool{}, 0
		for j := range slicesOf {
			s := &slicesOf[j]
			for _, e := range s.Endpoints {
				if e.NodeName != nil && *e.NodeName == nodes[i].Name && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
					count++
					services[s.Namespace+"/"+s.Labels[discoveryv1.LabelServiceName]] = true
				}
			}
		}
		if count == 0 {
			continue
		}
		var names []string
		for name := range services {
			names = append(names, name)
		}
		slices.Sort(names)
		if len(names) > 3 {
			names = append(names[:3], fmt.Sprintf("%d more", len(services)-3))
		}
		p.On(nodes[i].Name).Find(notReady, diag.Report{
			Subject: "node/" + nodes[i].Name, Severity: diag.Warning, Proof: []fact.Named{fact.Nodes, fact.EndpointSlices},
			Message: fmt.Sprintf("the node is not ready (%s), and %s as ready: Services send there (%s)", reason, counted(count), strings.Join(names, ", ")),
		})
	}
	return nil
}

// whyNotReady is "" for a node that is ready or does not tell.
func whyNotReady(n *corev1.Node) string {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			if c.Reason == "" {
				return "Ready is " + string(c.Status)
			}
			return c.Reason
		}
	}
	return ""
}

func counted(n int) string {
	if n == 1 {
		return "1 endpoint there counts"
	}
	return fmt.Sprintf("%d endpoints there count", n)
}
