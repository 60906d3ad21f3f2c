package config

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// releaseOwner is the rule about who would undo a change.
var releaseOwner = &diag.Rule{
	Name: "release-owner", Severity: diag.Error,
	Title: "somebody else owns Cilium's release and would undo a change",
	Doc: `Argo CD, Flux, the Helm controller of k3s and RKE2, or an operator apply Cilium's objects again and again. A change made past them, by helm or kubectl, lasts until their next
sync; in the middle of a migration that turns the replacement off while kube-proxy is gone.

Nothing is wrong as long as nobody changes anything: a cluster that only runs is told so for information. It becomes an error when a roll is under way that the owner did not start.`,
	Proof: []string{
		"kubectl -n kube-system get daemonset cilium -o jsonpath='{.metadata.labels} {.metadata.annotations} {.metadata.ownerReferences}'",
	},
	Remedy: `Change the values where the owner keeps them (the Application, the HelmRelease, the HelmChartConfig), or pause the owner for the time of the migration and say so there.`,
}

// ReleaseOwner checks who owns the release.
func ReleaseOwner() *diag.Check {
	return &diag.Check{
		Name:  releaseOwner.Name,
		Doc:   "whether GitOps or an operator owns Cilium's release",
		Scope: diag.OfCluster,
		Rules: []*diag.Rule{releaseOwner},
		Needs: []fact.Named{fact.AgentSets},
		Run: func(p *diag.Pass) error {
			sets, _ := fact.AgentSets.From(p.View())
			for i := range sets {
				owner, by := ownerOf(&sets[i].ObjectMeta)
				if owner == "" {
					continue
				}
				r := diag.Report{Subject: "daemonset/" + sets[i].Namespace + "/" + sets[i].Name, Severity: diag.Info, Proof: []fact.Named{fact.AgentSets}}
				r.Message = fmt.Sprintf("%s owns the release (%s): a change made past it is undone at its next sync", owner, by)
				if s := sets[i].Status; s.ObservedGeneration < sets[i].Generation || s.UpdatedNumberScheduled < s.DesiredNumberScheduled {
					r.Severity = diag.Warning
					r.Message += fmt.Sprintf("; a roll is under way (%d of %d updated), and it may turn back half-way", s.UpdatedNumberScheduled, s.DesiredNumberScheduled)
				}
				p.Find(releaseOwner, r)
			}
			return nil
		},
	}
}

// ownerOf finds marks of those who apply objects; Helm alone is no owner.
func ownerOf(m *metav1.ObjectMeta) (owner, by string) {
	for _, sign := range []struct{ key, owner string }{
		{"argocd.argoproj.io/tracking-id", "Argo CD"}, {"argocd.argoproj.io/instance", "Argo CD"},
		{"helm.toolkit.fluxcd.io/name", "Flux (HelmRelease)"}, {"kustomize.toolkit.fluxcd.io/name", "Flux (Kustomization)"},
		{"objectset.rio.cattle.io/owner-name", "the Helm controller of k3s and RKE2"},
		{"addonmanager.kubernetes.io/mode", "the add-on manager"},
	} {
		if v, ok := m.Annotations[sign.key]; ok {
			return sign.owner, sign.key + " " + v
		}
		if v, ok := m.Labels[sign.key]; ok {
			return sign.owner, sign.key + " " + v
		}
	}
	if i := slices.IndexFunc(m.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Controller != nil && *o.Controller }); i >= 0 {
		o := m.OwnerReferences[i]
		return o.Kind + " " + o.Name, "owner reference"
	}
	if strings.HasPrefix(m.Annotations["meta.helm.sh/release-name"], "rke2-") {
		return "the Helm controller of k3s and RKE2", "release " + m.Annotations["meta.helm.sh/release-name"]
	}
	return "", ""
}
