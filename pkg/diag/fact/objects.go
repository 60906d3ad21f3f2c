package fact

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Facts read straight from Kubernetes objects.
var (
	// Nodes are the cluster's Node objects.
	Nodes = Read(source.Nodes, objects[corev1.Node])
	// Pods are Cilium's and kube-proxy's pods; a snapshot may hold others.
	Pods = Read(source.Pods, objects[corev1.Pod])
	// PersistentVolumes are those that name a server; a snapshot may hold others.
	PersistentVolumes = Read(source.PersistentVolumes, objects[corev1.PersistentVolume])
	// DaemonSets are those of Cilium and kube-proxy; a snapshot may hold others.
	DaemonSets = Read(source.DaemonSets, objects[appsv1.DaemonSet])
	// CiliumConfig is the data of the ConfigMap cilium-config.
	CiliumConfig = Read(source.CiliumConfig, ciliumConfig)
	// NodeConfigs are the CiliumNodeConfigs: settings of single nodes.
	NodeConfigs = Read(source.CiliumNodeConfigs, objects[NodeConfig])
)

// NodeConfig is a CiliumNodeConfig as far as it is read here. The kind has no
// package of its own that could be imported without the agent's.
type NodeConfig struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		NodeSelector *metav1.LabelSelector `json:"nodeSelector"`
		Defaults     map[string]string     `json:"defaults"`
	} `json:"spec"`
}

// objects reads a Kubernetes list of any spelling: `kind: List`, a typed list
// whose items carry no kind (as sysdumps hold them), or one bare object.
func objects[T any](a source.Artifact) ([]T, error) {
	raw, err := asJSON(a)
	if err != nil {
		return nil, err
	}
	var list struct {
		Items    *[]T            `json:"items"`
		Metadata json.RawMessage `json:"metadata"`
		Kind     string          `json:"kind"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	if list.Items != nil {
		return *list.Items, nil
	}
	if list.Metadata == nil || list.Kind == "List" {
		return nil, fmt.Errorf("%s: neither a Kubernetes list nor an object", a.Origin)
	}
	var one T
	if err := json.Unmarshal(raw, &one); err != nil {
		return nil, err
	}
	return []T{one}, nil
}

func asJSON(a source.Artifact) ([]byte, error) {
	if a.Format == source.JSON {
		return a.Data, nil
	}
	raw, err := yaml.YAMLToJSON(a.Data)
	if err != nil {
		return nil, err
	}
	return raw, nil
}

func ciliumConfig(a source.Artifact) (map[string]string, error) {
	maps, err := objects[corev1.ConfigMap](a)
	if err != nil {
		return nil, err
	}
	for _, m := range maps {
		if m.Name == "cilium-config" || len(maps) == 1 {
			return m.Data, nil
		}
	}
	return nil, fmt.Errorf("%s: no ConfigMap cilium-config among %d: %w", a.Origin, len(maps), source.ErrAbsent)
}
