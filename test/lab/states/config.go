package states

import (
	"context"
	"errors"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/cluster"
)

func configFaults() []State {
	return []State{
		{
			Name: "config-pending", Doc: "cilium-config changed (bpf-lb-algorithm: maglev) and no agent restarted", Base: onKPR(),
			Enter:  func(ctx context.Context, l *cluster.Lab) error { return setConfig(ctx, l, `"maglev"`) },
			Leave:  func(ctx context.Context, l *cluster.Lab) error { return setConfig(ctx, l, `"random"`) },
			Expect: Expect{Exit: 0, Rule: "config-drift"},
		},
		{
			Name: "node-config", Doc: "a CiliumNodeConfig turns KPR off on kpr-w2 alone, and its agent runs with it", Base: onKPR(),
			Enter: func(ctx context.Context, l *cluster.Lab) error {
				if err := l.Apply(ctx, nodeConfig); err != nil {
					return err
				}
				return restartAgent(other)(ctx, l)
			},
			Leave: func(ctx context.Context, l *cluster.Lab) error {
				return errors.Join(l.DeleteNamed(ctx, "kube-system", "ciliumnodeconfig/lab-kpr-off"), restartAgent(other)(ctx, l))
			},
			Expect: Expect{Exit: 2, Rule: "kpr-mode", Node: other, Also: []string{"kpr-feature-disabled"}},
		},
		{
			Name: "api-unreachable", Doc: "an upgrade to a k8sServiceHost that nobody answers on: new agents hang in their first init container", Base: onKPR(),
			Enter: func(ctx context.Context, l *cluster.Lab) error {
				if err := setAPIHost(ctx, l, "172.30.0.99"); err != nil {
					return err
				}
				return l.Until(ctx, "a new agent hangs", time.Minute, func(ctx context.Context) (bool, error) {
					out, err := l.Kubectl(ctx, "", "-n", "kube-system", "get", "pods", "-l", "k8s-app=cilium", "-o", "jsonpath={.items[*].status.initContainerStatuses[0].state.running.startedAt}")
					return out != "", err
				})
			},
			Leave: func(ctx context.Context, l *cluster.Lab) error {
				if err := setAPIHost(ctx, l, "172.30.0.11"); err != nil {
					return err
				}
				return l.Rollout(ctx, "kube-system", "ds/cilium", 5*time.Minute)
			},
			Expect: Expect{Exit: 2, Rule: "agent-down", Also: []string{"apiserver-addr", "migration-stop"}},
		},
	}
}

const nodeConfig = `apiVersion: cilium.io/v2
kind: CiliumNodeConfig
metadata: {name: lab-kpr-off, namespace: kube-system}
spec:
  nodeSelector: {matchLabels: {kubernetes.io/hostname: kpr-w2}}
  defaults:
    kube-proxy-replacement: "false"
    enable-bpf-masquerade: "false"
`

func setConfig(ctx context.Context, l *cluster.Lab, algorithm string) error {
	_, err := l.Kubectl(ctx, "", "-n", "kube-system", "patch", "cm/cilium-config", "--type=merge", "-p", `{"data":{"bpf-lb-algorithm":`+algorithm+`}}`)
	return err
}

// setAPIHost changes the address in the DaemonSet, one node at a time, as
// Helm would.
func setAPIHost(ctx context.Context, l *cluster.Lab, host string) error {
	env := `[{"name":"KUBERNETES_SERVICE_HOST","value":"` + host + `"}]`
	patch := `{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":1}},"template":{"spec":{"containers":[{"name":"cilium-agent","env":` + env + `}],"initContainers":[{"name":"config","env":` + env + `},{"name":"clean-cilium-state","env":` + env + `}]}}}}`
	_, err := l.Kubectl(ctx, "", "-n", "kube-system", "patch", "ds/cilium", "--type=strategic", "-p", patch)
	return err
}
