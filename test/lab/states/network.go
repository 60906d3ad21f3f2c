package states

import (
	"context"
	"strings"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/cluster"
	"github.com/kubectl-kpr/kubectl-kpr/test/lab/machine"
	"github.com/kubectl-kpr/kubectl-kpr/test/lab/place"
)

func networkFaults() []State {
	return []State{{
		Name: "node-cut", Doc: "kpr-w2's cable pulled: the node answers nobody", Base: onKPR(),
		Enter: func(ctx context.Context, l *cluster.Lab) error {
			if err := cable(ctx, other, "down"); err != nil {
				return err
			}
			return l.Until(ctx, other+" not ready", 2*time.Minute, func(ctx context.Context) (bool, error) {
				out, err := l.Kubectl(ctx, "", "get", "node", other, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
				return err == nil && strings.TrimSpace(out) != "True", err
			})
		},
		Leave: func(ctx context.Context, l *cluster.Lab) error {
			if err := cable(ctx, other, "up"); err != nil {
				return err
			}
			if _, err := l.Kubectl(ctx, "", "wait", "--for=condition=Ready", "node", other, "--timeout=120s"); err != nil {
				return err
			}
			return l.AgentReady(ctx, other)
		},
		Expect: Expect{Exit: 2, Rule: "agent-down", Also: []string{"node-not-ready", "backend-state"}},
	}}
}

// cable pulls or plugs the bridge's end of a node's link: the node's own end
// keeps its addresses and routes.
func cable(ctx context.Context, node, way string) error {
	_, err := machine.Run(ctx, "ip", "-n", place.Fabric, "link", "set", node, way)
	return err
}
