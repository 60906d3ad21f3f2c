package service

import (
	"fmt"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// familyMismatch is the rule about frontends of a family without endpoints.
var familyMismatch = &diag.Rule{
	Name: "family-mismatch", Severity: diag.Error, Settles: true,
	Title: "a Service has a frontend of a family in which it has no endpoint",
	Doc: `The Service has an address in IPv4 and one in IPv6, and endpoints in one of the two only. Clients that take the
other address, as DNS may tell them to, are refused.

Pods get addresses of the families that Cilium gives out (enable-ipv4, enable-ipv6), a Service those that the API
server was started with: the two can differ. A pod can also listen in one family only, with hostNetwork on a
single-stack node. And an externalIP or a balancer's address can be of a family that ipFamilies does not name:
the controllers make slices for ipFamilies alone.

NAT46 and NAT64 Services, whose agents do have backends, are not meant.`,
	Proof: []string{
		"kubectl get service -n NAMESPACE NAME -o jsonpath='{.spec.ipFamilyPolicy} {.spec.ipFamilies} {.spec.clusterIPs}'",
		"kubectl get endpointslices -n NAMESPACE -l kubernetes.io/service-name=NAME",
	},
	Remedy: `Make the Service single-stack (ipFamilyPolicy SingleStack, ipFamilies) if its pods are; or give the pods both
families: switch the family on in Cilium and re-create them. For an externalIP or balancer address add its family to
ipFamilies.`,
}

// FamilyMismatch checks that Services have endpoints in the families of their
// frontends.
func FamilyMismatch() *diag.Check {
	return ofAPI(familyMismatch, "every Service has endpoints in the families of its frontends", judgeFamilies)
}

func judgeFamilies(p *diag.Pass) error {
	all, err := lacks(p.View(), lb.FamilyMissing)
	if err != nil {
		return err
	}
	for _, l := range all {
		r := l.report(diag.Error, fmt.Sprintf("%s%s: every client of %s is refused", strings.Join(l.reasons(), "; "), l.whyFamily(p.View()), l.frontends()))
		p.Find(familyMismatch, r)
	}
	return nil
}

// whyFamily names what is known to keep a family away.
func (l lack) whyFamily(v *fact.View) string {
	family, key := "IPv6", "enable-ipv6"
	if l.rows[0].Address.IP.Is4() {
		family, key = "IPv4", "enable-ipv4"
	}
	if cfg, err := fact.CiliumConfig.From(v); err == nil && cfg[key] == "false" {
		return fmt.Sprintf(" (%s is false in cilium-config, so no pod has an %s address)", key, family)
	}
	if fs := l.object(v).Spec.IPFamilies; len(fs) == 1 && string(fs[0]) != family {
		return fmt.Sprintf(" (ipFamilies is %s, the address is %s)", fs[0], family)
	}
	return ""
}
