package states

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/cluster"
)

// The nodes that faults happen on.
const (
	hurt  = "kpr-w1"
	other = "kpr-w2"
)

func agentFaults() []State {
	return []State{
		{
			Name: "agent-down", Doc: "the agent on kpr-w1 is gone and its image as well, so the next one never starts", Base: onKPR(),
			Enter: hideImage, Leave: showImage,
			Expect: Expect{Exit: 2, Rule: "agent-down", Node: hurt},
		},
		{
			Name: "agent-crash", Doc: "the agent on kpr-w1 crashes at every start: a CiliumNodeConfig gives it a tunnel protocol that there is not", Base: onKPR(),
			Enter: crashAgent, Leave: healAgent,
			Expect: Expect{Exit: 2, Rule: "agent-down", Node: hurt},
		},
		{
			Name: "agent-unwanted", Doc: "the DaemonSet keeps away from kpr-w1, so no agent is there; the others are not restarted", Base: onKPR(),
			Enter: keepAgentAway, Leave: letAgentBack,
			Expect: Expect{Exit: 0},
		},
		{
			Name: "agent-hung", Doc: "the agent on kpr-w1 is stopped by SIGSTOP: its pod runs, its programs get no answer", Base: onKPR(),
			Enter:  func(ctx context.Context, l *cluster.Lab) error { return signalAgent(ctx, l, "STOP") },
			Leave:  func(ctx context.Context, l *cluster.Lab) error { return signalAgent(ctx, l, "CONT") },
			Expect: Expect{Exit: 3, Rule: "incomplete", Node: hurt},
		},
		{
			Name: "agent-stale", Doc: "the agent on kpr-w1 no longer hears the API server while endpoints change: it goes stale", Base: onKPR(),
			Enter: deafen, Leave: hear,
			Expect: Expect{Exit: 2, Rule: "backend-stale", Node: hurt, Also: []string{"backend-missing", "node-not-ready"}},
		},
		{
			Name: "socket-lb-detached", Doc: "socket LB programs detached from kpr-w1's cgroup while the agent says they are on", Base: onKPR(),
			Enter: detachSocketLB, Leave: restartAgent(hurt),
			Expect: Expect{Exit: 2, Rule: "socketlb", Node: hurt},
		},
	}
}

// hideImage takes the agent's image from the node's runtime under its name,
// keeping it under another, and deletes the pod.
func hideImage(ctx context.Context, l *cluster.Lab) error {
	pod, err := l.Agent(ctx, hurt)
	if err != nil {
		return err
	}
	if err := errors.Join(retag(ctx, l, l.Dirs.Cilium.AgentImage(), l.Dirs.Cilium.AgentImage()+"-hidden"), deleteAgent(ctx, l, pod)); err != nil {
		return err
	}
	return l.Until(ctx, "agent without an image on "+hurt, time.Minute, func(ctx context.Context) (bool, error) {
		out, err := l.Kubectl(ctx, "", "-n", "kube-system", "get", "pods", "-l", "k8s-app=cilium", "--field-selector", "spec.nodeName="+hurt)
		return strings.Contains(out, "ErrImageNeverPull"), err
	})
}

func showImage(ctx context.Context, l *cluster.Lab) error {
	if err := retag(ctx, l, l.Dirs.Cilium.AgentImage()+"-hidden", l.Dirs.Cilium.AgentImage()); err != nil {
		return err
	}
	return restartAgent(hurt)(ctx, l)
}

func retag(ctx context.Context, l *cluster.Lab, from, to string) error {
	if _, err := l.In(ctx, hurt, "ctr", "-n", "k8s.io", "images", "tag", "--force", from, to); err != nil {
		return err
	}
	_, err := l.In(ctx, hurt, "ctr", "-n", "k8s.io", "images", "rm", from)
	return err
}

// crashAgent is a setting that the agent refuses at its start.
func crashAgent(ctx context.Context, l *cluster.Lab) error {
	if err := l.Apply(ctx, strings.NewReplacer("lab-kpr-off", "lab-crash", other, hurt, `kube-proxy-replacement: "false"`, "tunnel-protocol: nonsense").Replace(nodeConfig)); err != nil {
		return err
	}
	pod, err := l.Agent(ctx, hurt)
	if err != nil {
		return err
	}
	if err := deleteAgent(ctx, l, pod); err != nil {
		return err
	}
	return l.Until(ctx, "crashing agent on "+hurt, 2*time.Minute, func(ctx context.Context) (bool, error) {
		out, err := l.Kubectl(ctx, "", "-n", "kube-system", "get", "pods", "-l", "k8s-app=cilium", "--field-selector", "spec.nodeName="+hurt)
		return strings.Contains(out, "CrashLoopBackOff"), err
	})
}

func healAgent(ctx context.Context, l *cluster.Lab) error {
	return errors.Join(l.DeleteNamed(ctx, "kube-system", "ciliumnodeconfig/lab-crash"), restartAgent(hurt)(ctx, l))
}

// keepAgentAway takes the agent from one node. With the strategy OnDelete the
// controller still removes pods from nodes that the template now excludes, but
// restarts none of the others.
func keepAgentAway(ctx context.Context, l *cluster.Lab) error {
	patch := `{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null},"template":{"spec":{"affinity":{"nodeAffinity":` +
		`{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[` +
		`{"key":"kubernetes.io/hostname","operator":"NotIn","values":["` + hurt + `"]}]}]}}}}}}}`
	if err := patchAgents(ctx, l, patch); err != nil {
		return err
	}
	return l.Until(ctx, "agent gone from "+hurt, 2*time.Minute, func(ctx context.Context) (bool, error) {
		out, err := l.Kubectl(ctx, "", "-n", "kube-system", "get", "pods", "-l", "k8s-app=cilium", "--field-selector", "spec.nodeName="+hurt, "-o", "name")
		return strings.TrimSpace(out) == "", err
	})
}

func letAgentBack(ctx context.Context, l *cluster.Lab) error {
	if err := patchAgents(ctx, l, `{"spec":{"template":{"spec":{"affinity":{"nodeAffinity":null}}}}}`); err != nil {
		return err
	}
	if err := l.AgentReady(ctx, hurt); err != nil {
		return err
	}
	return patchAgents(ctx, l, `{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":3}}}}`)
}

func patchAgents(ctx context.Context, l *cluster.Lab, patch string) error {
	_, err := l.Kubectl(ctx, "", "-n", "kube-system", "patch", "ds/cilium", "--type=merge", "-p", patch)
	return err
}

// signalAgent sends a signal to the agent's own process, from its node: what
// is stopped cannot be asked to go on through its own container.
func signalAgent(ctx context.Context, l *cluster.Lab, signal string) error {
	_, err := l.In(ctx, hurt, "pkill", "-"+signal, "-x", "cilium-agent")
	return err
}

// restartAgent deletes a node's agent pod and waits for the next: it then
// writes its maps and programs anew.
func restartAgent(node string) func(context.Context, *cluster.Lab) error {
	return func(ctx context.Context, l *cluster.Lab) error {
		pod, err := l.Agent(ctx, node)
		if err != nil {
			return err
		}
		if err := deleteAgent(ctx, l, pod); err != nil {
			return err
		}
		return l.AgentReady(ctx, node)
	}
}

// restartAgents restarts all of them at once.
func restartAgents(ctx context.Context, l *cluster.Lab) error {
	if _, err := l.Kubectl(ctx, "", "-n", "kube-system", "rollout", "restart", "ds/cilium"); err != nil {
		return err
	}
	if err := l.Rollout(ctx, "kube-system", "ds/cilium", 5*time.Minute); err != nil {
		return err
	}
	return l.Settled(ctx, "kpr-cp", hurt, other)
}

func deleteAgent(ctx context.Context, l *cluster.Lab, pod string) error {
	return l.DeleteNamed(ctx, "kube-system", "pod/"+pod)
}

const deafTable = "kpr_lab_deaf"

// deafen drops what the node sends to the API server, the kubelet's messages
// included, and then replaces the pods of a Service, which run elsewhere.
func deafen(ctx context.Context, l *cluster.Lab) error {
	away := "      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: NotIn, values: [" + hurt + "]}]}]}}}\n"
	if err := l.Apply(ctx, deployment("moving", 2, away)+"---\n"+service("moving", "", "app: moving", 80, "http")); err != nil {
		return err
	}
	if err := l.Rollout(ctx, "shop", "deploy/moving", 2*time.Minute); err != nil {
		return err
	}
	rules := "table inet " + deafTable + " { chain out { type filter hook output priority -300; ip daddr 172.30.0.11 tcp dport 6443 drop; }; }"
	if _, err := l.In(ctx, hurt, "nft", rules); err != nil {
		return err
	}
	if _, err := l.Kubectl(ctx, "", "-n", "shop", "rollout", "restart", "deploy/moving"); err != nil {
		return err
	}
	return l.Rollout(ctx, "shop", "deploy/moving", 2*time.Minute)
}

func hear(ctx context.Context, l *cluster.Lab) error {
	_, _ = l.In(ctx, hurt, "nft", "delete table inet "+deafTable)
	err := l.DeleteNamed(ctx, "shop", "deploy/moving", "svc/moving")
	return errors.Join(err, l.AgentReady(ctx, hurt))
}

// detachSocketLB takes every program off the node's cgroup root but leaves
// them pinned, as a clumsy clean-up of /sys/fs/cgroup does.
func detachSocketLB(ctx context.Context, l *cluster.Lab) error {
	out, err := l.InAgent(ctx, hurt, "bash", "-c", "cd /sys/fs/bpf/cilium/socketlb/links/cgroup && ls && rm -v *")
	if err != nil {
		return fmt.Errorf("socket LB links: %w", err)
	}
	l.Say("removed %s", strings.Join(strings.Fields(out), " "))
	return nil
}
