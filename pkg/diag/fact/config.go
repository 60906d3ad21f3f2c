package fact

import (
	"fmt"
	"net"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Facts about what the agents were told.
var (
	// Config is cilium-config as a node's agent reads it at start: the
	// ConfigMap, overlaid by the CiliumNodeConfigs that select the node.
	Config = Define("agent-config", true, []Named{CiliumConfig, NodeConfigs, Nodes}, nodeConfig)
	// WantedMode is the mode that the node's configuration asks for.
	WantedMode = Define("wanted-mode", true, []Named{Config}, func(v *View) (Wanted, error) {
		cfg, err := Config.From(v)
		if err != nil {
			return Wanted{}, err
		}
		return wantedMode(cfg)
	})
	// APIServer is the address that a node's agent dials the API server at.
	APIServer = Define("api-server", true, []Named{Pods, AgentSets, CiliumConfig}, apiServer)
)

// Settings are an agent's configuration keys with, for keys that a
// CiliumNodeConfig sets, the name of that object.
type Settings struct {
	Data map[string]string
	From map[string]string
}

func nodeConfig(v *View) (Settings, error) {
	base, err := CiliumConfig.From(v)
	if err != nil {
		return Settings{}, err
	}
	s := Settings{Data: map[string]string{}, From: map[string]string{}}
	for k, val := range base {
		s.Data[k] = val
	}
	overlays, err := NodeConfigs.From(v)
	if err != nil || len(overlays) == 0 {
		return s, nil
	}
	nodes, err := Nodes.From(v)
	if err != nil {
		return s, fmt.Errorf("labels of %s, which CiliumNodeConfigs select by: %w", v.Node(), err)
	}
	for _, n := range nodes {
		if n.Name != v.Node() {
			continue
		}
		for _, o := range overlays {
			sel, err := metav1.LabelSelectorAsSelector(o.Spec.NodeSelector)
			if err != nil {
				return s, fmt.Errorf("ciliumnodeconfig %s/%s: %w", o.Namespace, o.Name, err)
			}
			if !sel.Matches(labels.Set(n.Labels)) {
				continue
			}
			for k, val := range o.Spec.Defaults {
				s.Data[k], s.From[k] = val, o.Namespace+"/"+o.Name
			}
		}
	}
	return s, nil
}

// Wanted is the mode asked for, and by which object and word.
type Wanted struct {
	Mode agent.Mode
	Said string // "strict"
	By   string // "cilium-config" or the CiliumNodeConfig's name
}

// wantedMode reads kube-proxy-replacement. A missing key is the agent's own
// default, which was "disabled" or "false" in every version read here.
func wantedMode(s Settings) (Wanted, error) {
	const key = "kube-proxy-replacement"
	said, ok := s.Data[key]
	w := Wanted{Said: said, By: "cilium-config"}
	if from := s.From[key]; from != "" {
		w.By = "CiliumNodeConfig " + from
	}
	switch strings.ToLower(said) {
	case "true", "strict":
		w.Mode = agent.ModeTrue
	case "partial":
		w.Mode = agent.ModePartial
	case "probe":
		w.Mode = agent.ModeProbe
	case "false", "disabled":
		w.Mode = agent.ModeFalse
	default:
		if ok {
			return w, fmt.Errorf("%s: %s=%q is no value that any Cilium takes", w.By, key, said)
		}
		w.Mode, w.Said = agent.ModeFalse, "not set"
	}
	return w, nil
}

// API is an API server address.
type API struct {
	Host, Port string
	// By says where it stands: "env of pod …", "env of daemonset …",
	// "k8s-api-server-urls in cilium-config", or "default" where nothing is set
	// and the agent uses the ClusterIP of default/kubernetes.
	By string
}

// String is host:port, or what the agent falls back to.
func (a API) String() string {
	switch {
	case a.Host == "":
		return "ClusterIP of default/kubernetes"
	case a.Port == "":
		return a.Host
	case strings.Contains(a.Host, "://"):
		return a.Host
	}
	return net.JoinHostPort(a.Host, a.Port)
}

// apiServer prefers the running pod's environment to the DaemonSet's template:
// a template that is not rolled out yet is not what the agent uses.
func apiServer(v *View) (API, error) {
	if cfg, err := CiliumConfig.From(v); err == nil && cfg["k8s-api-server-urls"] != "" {
		return API{Host: cfg["k8s-api-server-urls"], By: "k8s-api-server-urls in cilium-config"}, nil
	}
	pods, podErr := Pods.From(v)
	for _, p := range pods {
		if p.Spec.NodeName != v.Node() || !cilium.IsAgent(p.Labels) {
			continue
		}
		if api, ok := apiOf(p.Spec.Containers, "env of pod "+p.Namespace+"/"+p.Name); ok {
			return api, nil
		}
	}
	sets, err := AgentSets.From(v)
	if err != nil {
		if podErr != nil {
			err = podErr
		}
		return API{}, fmt.Errorf("api server address of %s: %w", v.Node(), err)
	}
	for _, ds := range sets {
		if api, ok := apiOf(ds.Spec.Template.Spec.Containers, "env of daemonset "+ds.Namespace+"/"+ds.Name); ok {
			return api, nil
		}
	}
	return API{}, fmt.Errorf("api server address of %s: no container %s: %w", v.Node(), cilium.AgentContainer, source.ErrAbsent)
}

func apiOf(cs []corev1.Container, by string) (API, bool) {
	for _, c := range cs {
		if c.Name != cilium.AgentContainer {
			continue
		}
		api := API{By: "default"}
		for _, e := range c.Env {
			switch e.Name {
			case "KUBERNETES_SERVICE_HOST":
				api.Host, api.By = e.Value, by
				if e.ValueFrom != nil {
					api.Host = "(from another object)"
				}
			case "KUBERNETES_SERVICE_PORT":
				api.Port = e.Value
			}
		}
		if api.Host == "" {
			api.Port = ""
		}
		return api, true
	}
	return API{}, false
}
