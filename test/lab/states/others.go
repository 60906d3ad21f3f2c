package states

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/cluster"
)

// otherStates are about programs of others in the cluster.
func otherStates() []State {
	return []State{ownerReverts(), foreignObjects()}
}

// tracking is how Argo CD marks what it owns.
const tracking = "argocd.argoproj.io/tracking-id"

func ownerReverts() State {
	return State{
		Name: "owner-reverts", Doc: "Argo CD's mark on Cilium's DaemonSet, and a loop that puts cilium-config back whenever it was changed", Base: onKPR(),
		Enter: func(ctx context.Context, l *cluster.Lab) error {
			if _, err := l.Kubectl(ctx, "", "-n", "kube-system", "annotate", "ds/cilium", "--overwrite", tracking+"=cilium:apps/DaemonSet:kube-system/cilium"); err != nil {
				return err
			}
			if err := l.Own(ctx); err != nil {
				return err
			}
			if err := setConfig(ctx, l, `"maglev"`); err != nil {
				return err
			}
			return l.Until(ctx, "the owner reverts a change", time.Minute, func(ctx context.Context) (bool, error) {
				out, err := l.Kubectl(ctx, "", "-n", "kube-system", "get", "cm/cilium-config", "-o", "jsonpath={.data.bpf-lb-algorithm}")
				return out != "maglev", err
			})
		},
		Leave: func(ctx context.Context, l *cluster.Lab) error {
			_, err := l.Kubectl(ctx, "", "-n", "kube-system", "annotate", "ds/cilium", tracking+"-")
			return errors.Join(l.Disown(), err)
		},
		Expect: Expect{Rule: "release-owner", Subject: "daemonset/kube-system/cilium"},
	}
}

// crd is a kind of others with nothing but a name and a status.
func crd(group, version, kind string) string {
	plural := strings.ToLower(kind) + "s"
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[3]ss.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: %[4]s, plural: %[3]ss, singular: %[3]s}
  versions:
  - name: %[2]s
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, group, version, strings.TrimSuffix(plural, "s"), kind)
}

// foreign are objects of others with the status that they should have, set by
// hand: the state of a cluster before a migration.
var foreign = []struct{ group, version, kind, name, status string }{
	{"velero.io", "v1", "Backup", "nightly", `{"phase":"Completed","completionTimestamp":"NOW"}`},
	{"external-secrets.io", "v1", "ExternalSecret", "db", `{"conditions":[{"type":"Ready","status":"True","reason":"SecretSynced"}]}`},
	{"argoproj.io", "v1alpha1", "Application", "shop", `{"sync":{"status":"Synced"},"health":{"status":"Healthy"}}`},
}

func foreignObjects() State {
	var kinds, objects []string
	for _, f := range foreign {
		kinds = append(kinds, crd(f.group, f.version, f.kind))
		objects = append(objects, fmt.Sprintf("apiVersion: %s/%s\nkind: %s\nmetadata: {name: %s, namespace: shop}\n", f.group, f.version, f.kind, f.name))
	}
	return State{
		Name: "foreign-objects", Doc: "a Velero Backup, an ExternalSecret and an Argo CD Application, all well, their conditions set by hand", Base: onKPR(),
		Enter: func(ctx context.Context, l *cluster.Lab) error {
			if err := l.Apply(ctx, strings.Join(kinds, "---\n")); err != nil {
				return err
			}
			for _, f := range foreign {
				if _, err := l.Kubectl(ctx, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/"+strings.ToLower(f.kind)+"s."+f.group); err != nil {
					return err
				}
			}
			if err := l.Apply(ctx, strings.Join(objects, "---\n")); err != nil {
				return err
			}
			for _, f := range foreign {
				status := strings.Replace(f.status, "NOW", time.Now().UTC().Format(time.RFC3339), 1)
				if _, err := l.Kubectl(ctx, "", "-n", "shop", "patch", strings.ToLower(f.kind)+"s."+f.group+"/"+f.name, "--subresource=status", "--type=merge", "-p", `{"status":`+status+`}`); err != nil {
					return err
				}
			}
			return nil
		},
		Leave: func(ctx context.Context, l *cluster.Lab) error { return l.Delete(ctx, strings.Join(kinds, "---\n")) },
	}
}
