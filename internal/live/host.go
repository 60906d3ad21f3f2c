package live

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/evidence"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

// HostRunner runs an argv on a node itself. What reads knows no more of it:
// it takes a pod of its own, and making one is writing.
type HostRunner interface {
	// RunOnHost runs argv as root in the node's network and process namespaces
	// and in a file system that has a shell; the node's own files are below
	// /proc/1/root. Errors wrap one of source's.
	RunOnHost(ctx context.Context, on HostNode, argv []string, max exec.Limits) (exec.Result, error)
}

// HostNode is where to run.
type HostNode struct {
	Name      string // of the node
	Namespace string // of Cilium, where privileged pods are allowed
	Image     string // the agent's, which is on the node already
}

// host answers the queries about a node that only the host itself can answer.
func (s *Source) host(ctx context.Context, r *roster, node string, qs []source.Query, give func(source.Artifact, error)) {
	if len(qs) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.options.NodeTimeout)
	defer cancel()
	refuse := func(q source.Query, err error) {
		give(source.Artifact{Query: q}, fmt.Errorf("%s on %s: %w", q.Topic, node, err))
	}
	image := s.agentImage(r, node)
	var ask []question
	for _, q := range qs {
		item, _ := evidence.Of(q.Topic)
		how, ok := evidence.HostAsk(q.Topic)
		switch {
		case s.options.Host == nil:
			refuse(q, fmt.Errorf("only the host shows it, and --host was not given: %w", source.ErrAbsent))
		case !ok || image == "":
			refuse(q, fmt.Errorf("no command and image to ask the host with: %w", source.ErrAbsent))
		default:
			ask = append(ask, question{q, how, item, nil})
		}
	}
	if len(ask) == 0 {
		return
	}
	on := HostNode{Name: node, Namespace: s.ciliumNamespace(r), Image: image}
	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails, see crypto/rand
	nonce := hex.EncodeToString(random)
	// Half of the time is left for the pod to start.
	argv, limits := scriptOf(ask, nonce, s.options.NodeTimeout/2)
	result, err := s.options.Host.RunOnHost(ctx, on, argv, limits)
	for i, reply := range repliesOf(result, err, nonce, ask, s.options.Now()) {
		reply.origin = ask[i].ask.Shown("") + " on the host"
		a, err := reply.artifact(ask[i])
		if err != nil {
			err = fmt.Errorf("%s on %s: %w", ask[i].query.Topic, node, err)
		}
		give(a, err)
	}
}

// HostNode is where to run on a node: with the agent's image, and where the
// agents are. It fails where there is no agent whose image could be used.
func (s *Source) HostNode(ctx context.Context, node string) (HostNode, error) {
	r, err := s.roster(ctx)
	if err != nil {
		return HostNode{}, err
	}
	on := HostNode{Name: node, Namespace: s.ciliumNamespace(r), Image: s.agentImage(r, node)}
	if on.Image == "" {
		return on, fmt.Errorf("node %s: no agent whose image a pod on the host could use: %w", node, source.ErrAbsent)
	}
	return on, nil
}

// agentImage is the image of a node's agent, or of any where it has none.
func (s *Source) agentImage(r *roster, node string) string {
	image := r.agents[node].Image
	for _, a := range r.agents {
		image = cmp.Or(image, a.Image)
	}
	return image
}

// scriptOf is the argv that asks qs in one go, and how much may come back.
func scriptOf(qs []question, nonce string, budget time.Duration) ([]string, exec.Limits) {
	commands := make([]command, len(qs))
	limits := exec.Limits{Stdout: frameRoom, Stderr: frameRoom}
	for i, q := range qs {
		commands[i] = command{argv: q.ask.Argv, limit: q.item.Cap, timeout: q.item.Timeout}
		limits.Stdout += q.item.Cap + frameRoom
		limits.Stderr += errCap + frameRoom
	}
	limits.Stdout = min(limits.Stdout, nodeCap)
	return scriptArgv(nonce, budget, commands), limits
}

// repliesOf sorts what a script's commands said. The error is the exec's own.
func repliesOf(result exec.Result, err error, nonce string, qs []question, read time.Time) []reply {
	out, binary := frames(result.Stdout, nonce, len(qs))
	errs, _ := frames(result.Stderr, nonce, len(qs))
	replies := make([]reply, len(qs))
	for i := range qs {
		replies[i] = reply{out: out[i], stderr: errs[i].data, err: err, read: read, binary: binary}
	}
	return replies
}
