package cluster

import (
	"context"
	"encoding/json"
	"time"
)

// AgentReady waits until a node has a ready agent whose endpoints have their
// programs.
func (l *Lab) AgentReady(ctx context.Context, node string) error {
	err := l.Until(ctx, "agent ready on "+node, 5*time.Minute, func(ctx context.Context) (bool, error) {
		var pods struct {
			Items []struct {
				Metadata struct{ DeletionTimestamp string }
				Status   struct {
					Conditions []struct{ Type, Status string }
				}
			}
		}
		err := l.Get(ctx, &pods, "-n", "kube-system", "pods", "-l", "k8s-app=cilium", "--field-selector", "spec.nodeName="+node)
		if err != nil || len(pods.Items) != 1 || pods.Items[0].Metadata.DeletionTimestamp != "" {
			return false, err
		}
		for _, c := range pods.Items[0].Status.Conditions {
			if c.Type == "Ready" {
				return c.Status == "True", nil
			}
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	return l.Settled(ctx, node)
}

// DeleteNamed deletes objects of a namespace, "svc/web" for example, at once,
// and does not mind what is gone already.
func (l *Lab) DeleteNamed(ctx context.Context, namespace string, objects ...string) error {
	_, err := l.Kubectl(ctx, "", append([]string{"-n", namespace, "delete", "--ignore-not-found", "--grace-period=1", "--wait=true"}, objects...)...)
	return err
}

// Settled waits until every endpoint of the given nodes has its programs. An
// agent is ready long before: it compiles them first.
func (l *Lab) Settled(ctx context.Context, nodes ...string) error {
	for _, node := range nodes {
		err := l.Until(ctx, "endpoints regenerated on "+node, 4*time.Minute, func(ctx context.Context) (bool, error) {
			out, err := l.InAgent(ctx, node, "cilium-dbg", "endpoint", "list", "-o", "json")
			if err != nil {
				return false, err
			}
			var endpoints []struct{ Status struct{ State string } }
			if err := json.Unmarshal([]byte(out), &endpoints); err != nil {
				return false, err
			}
			for _, e := range endpoints {
				if e.Status.State != "ready" {
					return false, nil
				}
			}
			return len(endpoints) > 0, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
