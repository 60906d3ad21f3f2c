package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/internal/evidence"
	"github.com/kubectl-kpr/kubectl-kpr/internal/kube"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// cluster answers a query about the whole cluster.
func (s *Source) cluster(ctx context.Context, r *roster, q source.Query) (source.Artifact, error) {
	item, _ := evidence.Of(q.Topic)
	a := source.Artifact{Query: q, Format: source.JSON, Stem: string(q.Topic), Origin: item.Live, Read: s.options.Now()}
	var err error
	switch q.Topic {
	case source.Services, source.ServicesAfter:
		a.Data, err = s.list(ctx, "services", nil)
	case source.EndpointSlices, source.EndpointSlicesAfter:
		a.Data, err = s.list(ctx, "endpointslices", nil)
	case source.DaemonSets:
		a.Data, err = s.list(ctx, "daemonsets", isOurs)
	case source.PersistentVolumes:
		a.Data, err = s.list(ctx, "persistentvolumes", namesServer)
	case source.Nodes:
		a.Data, a.Read, err = bytes.Clone(r.nodesJSON), r.read, r.nodesErr
	case source.Pods:
		a.Data, a.Read, err = bytes.Clone(r.podsJSON), r.read, r.podsErr
	case source.ConfigMaps:
		a.Data, err = s.configMaps(ctx)
	case source.CiliumConfig:
		namespace := s.ciliumNamespace(r)
		a.Origin = strings.Replace(item.Live, "NAMESPACE", namespace, 1)
		a.Data, err = s.kube.ConfigMap(ctx, namespace, "cilium-config")
	case source.LocalRedirects:
		a.Data, a.Read, err = bytes.Clone(r.redirects.json), r.read, r.redirects.err
	case source.CiliumNodeConfigs:
		a.Data, a.Origin, err = s.kube.CiliumNodeConfigs(ctx)
	default:
		err = fmt.Errorf("not read from a running cluster: %w", source.ErrAbsent)
	}
	if err != nil {
		return source.Artifact{Query: q}, fmt.Errorf("%s: %w", q.Topic, err)
	}
	return a, nil
}

func (s *Source) list(ctx context.Context, name string, keep func(kube.Object) bool) ([]byte, error) {
	resource, ok := kube.ResourceOf(name)
	if !ok {
		return nil, fmt.Errorf("%s cannot be listed: %w", name, source.ErrAbsent)
	}
	return s.kube.List(ctx, resource, keep, nil)
}

// ciliumNamespace is where the agents are, kube-system if there are none.
func (s *Source) ciliumNamespace(r *roster) string {
	agent := cilium.Agent{}
	for _, agent = range r.agents {
		break
	}
	return cmp.Or(s.options.CiliumNamespace, agent.Namespace, "kube-system")
}

// isOurs keeps the DaemonSets of Cilium and kube-proxy, and of kube-vip, at whose
// address agents may find the API server. Some that run
// kube-proxy bear no label at all, so names count as well.
func isOurs(o kube.Object) bool {
	if kube.IsCiliumPod(o) || kube.IsKubeProxyPod(o) || kube.IsVirtualIP(o) || strings.HasPrefix(o.GetName(), "cilium") || strings.Contains(o.GetName(), "kube-proxy") {
		return true
	}
	ds, ok := o.(*appsv1.DaemonSet)
	if !ok {
		return false
	}
	app := ds.Spec.Template.Labels["k8s-app"]
	return app == "cilium" || app == "kube-proxy" || ds.Spec.Template.Labels["app.kubernetes.io/part-of"] == "cilium"
}

// namesServer keeps the volumes that a kernel mounts from a server.
func namesServer(o kube.Object) bool {
	v, ok := o.(*corev1.PersistentVolume)
	if !ok {
		return false
	}
	csi := v.Spec.CSI
	return v.Spec.NFS != nil || csi != nil && (csi.VolumeAttributes["server"] != "" || csi.VolumeAttributes["source"] != "")
}

// configMaps reads the two ConfigMaps from which kubeadm makes kube-proxy. That
// there is none is an answer too.
func (s *Source) configMaps(ctx context.Context) ([]byte, error) {
	var found [][]byte
	for _, name := range []string{"kubeadm-config", "kube-proxy"} {
		data, err := s.kube.ConfigMap(ctx, "kube-system", name)
		switch {
		case err == nil:
			found = append(found, data)
		case !errors.Is(err, source.ErrAbsent):
			return nil, err
		}
	}
	return []byte(`{"apiVersion":"v1","kind":"List","items":[` + string(bytes.Join(found, []byte(","))) + `]}`), nil
}
