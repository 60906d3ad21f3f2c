package live

import (
	"context"
	"fmt"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

// Exec runs argv in the agent of a node with its streams connected and returns
// its exit code. Errors are those of exec.Executor.Stream; where the node has
// no running agent the error says why and wraps one of the source's.
func (s *Source) Exec(ctx context.Context, node string, argv []string, streams exec.Streams) (int, error) {
	r, err := s.roster(ctx)
	if err != nil {
		return 0, err
	}
	agent, ok := r.agents[node]
	if err := missing(r, node, ok); err != nil {
		return 0, fmt.Errorf("node %s: %w", node, err)
	}
	if !agent.Running {
		return 0, fmt.Errorf("node %s: no running agent: %s: %w", node, agent.Reason, source.ErrUnreachable)
	}
	t := exec.Target{Namespace: agent.Namespace, Pod: agent.Pod, Container: agent.Container}
	return s.exec.Stream(ctx, t, argv, streams)
}

// AgentImage is the image of the agents, which is on every node already, or
// another where that is given. "" where there is no agent.
func (s *Source) AgentImage(ctx context.Context, other string) string {
	if other != "" {
		return other
	}
	r, err := s.roster(ctx)
	if err != nil {
		return ""
	}
	return s.agentImage(r, "")
}
