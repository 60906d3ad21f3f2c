package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/place"
	"github.com/kubectl-kpr/kubectl-kpr/test/lab/recipe"
)

// Base is what a cluster is apart from faults: how Cilium is installed and
// what there is of kube-proxy.
type Base struct {
	KPR       bool   `json:"kpr"`
	KubeProxy string `json:"kubeProxy,omitempty"` // mode of a running kube-proxy: iptables, nftables, ""
	Residue   string `json:"residue,omitempty"`   // mode of one whose DaemonSet was deleted and whose rules were left
	// Values are more Helm values, as --set takes them.
	Values map[string]string `json:"values,omitempty"`
}

const baseFile = "base.json"

// Base is the present one; the zero Base where none was reached yet.
func (l *Lab) Base() (Base, error) {
	var b Base
	if err := l.recall(baseFile, &b); err != nil && !errors.Is(err, os.ErrNotExist) {
		return b, err
	}
	return b, nil
}

// Equal tells whether two bases are the same.
func (b Base) Equal(o Base) bool {
	return b.KPR == o.KPR && b.KubeProxy == o.KubeProxy && b.Residue == o.Residue && maps.Equal(b.Values, o.Values)
}

// Converge brings the cluster from whatever it is to the wanted base. The
// order is the one of a careful migration: kube-proxy goes only after Cilium
// has taken over, and is back before Cilium lets go.
func (l *Lab) Converge(ctx context.Context, want Base) error {
	have, err := l.Base()
	if err != nil {
		return err
	}
	_ = os.Remove(l.Dirs.Under(baseFile)) // halfway is no base
	// Rules of another mode go by themselves when kube-proxy starts in this one.
	proxy := want.KubeProxy
	if want.Residue != "" && have.Residue != want.Residue {
		proxy = want.Residue
	}
	if proxy != "" {
		if err := l.startProxy(ctx, proxy); err != nil {
			return err
		}
	}
	if err := l.cilium(ctx, want); err != nil {
		return err
	}
	if want.KubeProxy == "" {
		if err := l.stopProxy(ctx); err != nil {
			return err
		}
	}
	if want.KubeProxy == "" && want.Residue == "" {
		if err := l.cleanProxy(ctx); err != nil {
			return err
		}
	}
	return l.remember(baseFile, want)
}

// startProxy runs kube-proxy on every node in that mode and waits for rules.
func (l *Lab) startProxy(ctx context.Context, mode string) error {
	yaml, err := manifest("kube-proxy.yaml", "@IMAGE@", recipe.ProxyImage, "@MODE@", mode)
	if err != nil {
		return err
	}
	before, _ := l.Kubectl(ctx, "", "-n", "kube-system", "get", "cm", "kube-proxy", "-o", "jsonpath={.data.config\\.conf}")
	if err := l.Apply(ctx, yaml); err != nil {
		return err
	}
	if before != "" && !strings.Contains(before, "mode: "+mode) {
		if _, err := l.Kubectl(ctx, "", "-n", "kube-system", "rollout", "restart", "ds/kube-proxy"); err != nil {
			return err
		}
	}
	if err := l.Rollout(ctx, "kube-system", "ds/kube-proxy", 4*time.Minute); err != nil {
		return err
	}
	for _, n := range place.Nodes() {
		if err := l.Until(ctx, "kube-proxy's rules on "+n.Name, time.Minute, func(ctx context.Context) (bool, error) {
			return l.hasRules(ctx, n.Name, mode)
		}); err != nil {
			return err
		}
	}
	l.Say("kube-proxy runs in %s mode", mode)
	return nil
}

func (l *Lab) hasRules(ctx context.Context, node, mode string) (bool, error) {
	if mode == "nftables" {
		out, err := l.In(ctx, node, "nft", "list", "tables")
		return strings.Contains(out, "ip kube-proxy"), err
	}
	out, err := l.In(ctx, node, "iptables-save", "-t", "nat")
	return strings.Contains(out, "-A KUBE-SERVICES"), err
}

// stopProxy deletes kube-proxy and leaves its rules.
func (l *Lab) stopProxy(ctx context.Context) error {
	if _, err := l.Kubectl(ctx, "", "-n", "kube-system", "delete", "ds/kube-proxy", "cm/kube-proxy", "--ignore-not-found", "--wait"); err != nil {
		return err
	}
	err := l.Until(ctx, "kube-proxy's pods gone", 2*time.Minute, func(ctx context.Context) (bool, error) {
		out, err := l.Kubectl(ctx, "", "-n", "kube-system", "get", "pods", "-l", "k8s-app=kube-proxy", "-o", "name")
		return strings.TrimSpace(out) == "", err
	})
	l.Say("kube-proxy deleted")
	return err
}

// cleanProxy removes kube-proxy's rules from every node with its own --cleanup.
func (l *Lab) cleanProxy(ctx context.Context) error {
	for _, n := range place.Nodes() {
		if _, err := l.In(ctx, n.Name, l.Dirs.Under("bin", "kube-proxy"), "--cleanup"); err != nil {
			return err
		}
	}
	l.Say("kube-proxy's rules removed")
	return nil
}

// cilium installs or upgrades Cilium by its chart and waits for the agents.
func (l *Lab) cilium(ctx context.Context, want Base) error {
	dir, err := recipe.CiliumDir(ctx, l.Dirs)
	if err != nil {
		return err
	}
	values, err := manifest("values.yaml", "@AGENT@", l.Dirs.Cilium.AgentImage(), "@OPERATOR@", l.Dirs.Cilium.OperatorImage())
	if err != nil {
		return err
	}
	file := l.Dirs.Under("values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o644); err != nil {
		return err
	}
	set := map[string]string{"kubeProxyReplacement": fmt.Sprint(want.KPR)}
	if want.KPR {
		maps.Copy(set, map[string]string{"k8sServiceHost": place.APIHost, "k8sServicePort": place.APIPort, "bpf.masquerade": "true", "bpf.hostLegacyRouting": "false"})
	}
	maps.Copy(set, want.Values)
	args := []string{"upgrade", "--install", "cilium", filepath.Join(dir, "install/kubernetes/cilium"), "-n", "kube-system", "-f", file}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		args = append(args, "--set", name+"="+set[name])
	}
	before, err := l.installed(ctx)
	if err != nil {
		return err
	}
	if _, err := l.Helm(ctx, args...); err != nil {
		return err
	}
	return l.rollAgents(ctx, before)
}

// rollAgents waits for the agents to run what the chart wrote. A change of the
// ConfigMap alone does not restart them: then this does.
func (l *Lab) rollAgents(ctx context.Context, before installed) error {
	after, err := l.installed(ctx)
	if err != nil {
		return err
	}
	if before.Config != "" && before.Config != after.Config && before.Generation == after.Generation {
		if _, err := l.Kubectl(ctx, "", "-n", "kube-system", "rollout", "restart", "ds/cilium"); err != nil {
			return err
		}
	}
	if err := l.Rollout(ctx, "kube-system", "ds/cilium", 8*time.Minute); err != nil {
		return err
	}
	l.Say("agents rolled out")
	if _, err = l.Kubectl(ctx, "", "wait", "--for=condition=Ready", "nodes", "--all", "--timeout=180s"); err != nil {
		return err
	}
	l.Say("nodes ready")
	err = l.Settled(ctx, "kpr-cp", "kpr-w1", "kpr-w2")
	l.Say("endpoints have their programs")
	return err
}

// installed is what decides whether agents are to be restarted: the data of
// cilium-config, and the generation of the DaemonSet, which moves with its pod
// template and makes the controller restart them by itself.
type installed struct {
	Config     string
	Generation int
}

func (l *Lab) installed(ctx context.Context) (installed, error) {
	var list struct {
		Items []struct {
			Kind     string
			Data     map[string]string
			Metadata struct {
				Name       string
				Generation int
			}
		}
	}
	var out installed
	if err := l.Get(ctx, &list, "-n", "kube-system", "cm,ds"); err != nil {
		return out, err
	}
	for _, o := range list.Items {
		switch {
		case o.Kind == "DaemonSet" && o.Metadata.Name == "cilium":
			out.Generation = o.Metadata.Generation
		case o.Kind == "ConfigMap" && o.Metadata.Name == "cilium-config":
			data, err := json.Marshal(o.Data)
			if err != nil {
				return out, err
			}
			out.Config = string(data)
		}
	}
	return out, nil
}
