package live

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/internal/evidence"
	"github.com/kubectl-kpr/kubectl-kpr/internal/kube"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

// question is a query that a command answers.
type question struct {
	query source.Query
	ask   cilium.Ask
	item  evidence.Item
	whole *question // what to ask where this version does not know ask, or nil
}

// node answers all queries about one node.
func (s *Source) node(ctx context.Context, r *roster, node string, qs []source.Query, give func(source.Artifact, error)) {
	var ofAgent, ofHost []source.Query
	for _, q := range qs {
		if spec, _ := source.SpecOf(q.Topic); spec.Host {
			ofHost = append(ofHost, q)
		} else {
			ofAgent = append(ofAgent, q)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { s.host(ctx, r, node, ofHost, give) })
	s.agent(ctx, r, node, ofAgent, give)
	wg.Wait()
}

// agent answers the queries about one node that its agent's pod can answer.
func (s *Source) agent(parent context.Context, r *roster, node string, qs []source.Query, give func(source.Artifact, error)) {
	ctx, cancel := context.WithTimeout(parent, s.options.NodeTimeout)
	defer cancel()
	refuse := func(q source.Query, err error) {
		give(source.Artifact{Query: q}, fmt.Errorf("%s on %s: %w", q.Topic, node, err))
	}
	agent, ok := r.agents[node]
	if err := missing(r, node, ok); err != nil {
		for _, q := range qs {
			refuse(q, err)
		}
		return
	}
	caps := cilium.CapabilitiesOfImage(agent.Image)
	var watching sync.WaitGroup
	defer watching.Wait()
	var ask []question
	for _, q := range qs {
		item, _ := evidence.Of(q.Topic)
		if q.Topic == source.AgentLog || q.Topic == source.InitLog {
			a, err := s.log(ctx, agent, item, q)
			if err != nil {
				err = fmt.Errorf("%s on %s: %w", q.Topic, node, err)
			}
			give(a, err)
			continue
		}
		if q.Topic == source.Drops && agent.Running {
			watching.Go(func() {
				a, err := s.drops(parent, agent, q)
				if err != nil {
					err = fmt.Errorf("%s on %s: %w", q.Topic, node, err)
				}
				give(a, err)
			})
			continue
		}
		if q.Topic == source.APIProbe && agent.Running {
			a, err := s.apiProbe(ctx, r, agent, q)
			if err != nil {
				a, err = source.Artifact{Query: q}, fmt.Errorf("%s on %s: %w", q.Topic, node, err)
			}
			give(a, err)
			continue
		}
		how, ok := cilium.AskFor(q.Topic)
		switch {
		case q.Topic == source.APIProbe && !agent.Running:
			refuse(q, fmt.Errorf("no running agent: %s: %w", agent.Reason, source.ErrUnreachable))
		case !ok:
			refuse(q, fmt.Errorf("no command tells it: %w", source.ErrAbsent))
		case how.Needs != 0 && caps.Has(how.Needs) == lb.No:
			refuse(q, fmt.Errorf("needs Cilium %s, the agent is %s: %w", how.Needs.Since(), caps, source.ErrAbsent))
		case !agent.Running:
			refuse(q, fmt.Errorf("no running agent: %s: %w", agent.Reason, source.ErrUnreachable))
		default:
			ask = append(ask, s.narrowed(question{q, how, item, nil}, caps))
		}
	}
	if len(ask) > 0 {
		slices.SortStableFunc(ask, func(a, b question) int { return cmp.Compare(turn(a.query.Topic), turn(b.query.Topic)) })
		s.askAgent(ctx, agent, ask, give)
	}
}

// narrowed is the question about one namespace, where that is all that is
// wanted and the agent's version is known to have the tables for it.
func (s *Source) narrowed(q question, caps cilium.Capabilities) question {
	narrow, ok := q.ask.Within(s.options.Within)
	if !ok || caps.Has(narrow.Needs) != lb.Yes || len(validation.IsDNS1123Label(s.options.Within)) > 0 {
		return q
	}
	whole := q
	q.ask, q.whole = narrow, &whole
	return q
}

// turn orders the questions to a node: what most verdicts need comes first, so
// that a node which is slow today still tells it; the largest tables come last.
func turn(t source.Topic) int {
	first := []source.Topic{source.Status, source.ProxyMode, source.ProxyHealth, source.ServiceList, source.MapList}
	if i := slices.Index(first, t); i >= 0 {
		return i - len(first)
	}
	if t == source.MapsDump || t == source.FrontendsTable {
		return 1
	}
	return 0
}

// missing says why a node has no agent pod at all.
func missing(r *roster, node string, hasAgent bool) error {
	switch {
	case hasAgent:
		return nil
	case r.agentsErr != nil:
		return r.agentsErr
	case r.nodesErr == nil && !r.known[node]:
		return fmt.Errorf("no node of that name: %w", source.ErrAbsent)
	}
	return fmt.Errorf("no Cilium agent pod on this node: %w", source.ErrAbsent)
}

// askAgent asks an agent everything in one exec, and once more for what was
// cut off or did not come. Large answers are lost now and then to a reset
// connection; a second refusal is none of that kind.
func (s *Source) askAgent(ctx context.Context, agent cilium.Agent, qs []question, give func(source.Artifact, error)) {
	for attempt := 1; len(qs) > 0; attempt++ {
		replies, runErr := s.attempt(ctx, agent, qs)
		again := attempt == 1 && ctx.Err() == nil && !errors.Is(runErr, source.ErrForbidden) && !errors.Is(runErr, source.ErrAbsent)
		var left []question
		for i, q := range qs {
			if again && replies[i].worthAgain(q) {
				left = append(left, q)
				continue
			}
			a, err := replies[i].artifact(q)
			if err != nil && q.whole != nil && replies[i].out.ended && ctx.Err() == nil {
				left = append(left, *q.whole)
				continue
			}
			if err != nil {
				err = fmt.Errorf("%s on %s: %w", q.query.Topic, agent.Node, err)
			}
			give(a, err)
		}
		qs = left
	}
}

// attempt runs the questions' commands once and sorts what came back. The
// error is the exec's own; each reply that it affects carries it as well.
func (s *Source) attempt(ctx context.Context, agent cilium.Agent, qs []question) ([]reply, error) {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails, see crypto/rand
	nonce := hex.EncodeToString(random)
	// The node's clock must be up before ours is, so that what its last
	// commands said still comes home.
	budget := s.options.NodeTimeout
	if deadline, ok := ctx.Deadline(); ok {
		budget = time.Until(deadline)
	}
	budget -= min(3*time.Second, budget/4)
	argv, limits := scriptOf(qs, nonce, budget)
	result, err := s.exec.Run(ctx, exec.Target{Namespace: agent.Namespace, Pod: agent.Pod, Container: agent.Container}, argv, limits)
	replies := repliesOf(result, err, nonce, qs, s.options.Now())
	for i := range replies {
		replies[i].origin = qs[i].ask.Shown(cmp.Or(cilium.PlainLine(replies[i].binary, 32), "cilium-dbg")) + " in pod " + agent.Namespace + "/" + agent.Pod
	}
	return replies, err
}

const (
	// frameRoom is more than the lines around one answer take.
	frameRoom = 256
	// nodeCap bounds all answers of a node together. It is several times what
	// 5000 Services make; a full pass of nodes at that size fits in 3 GiB.
	nodeCap = 160 << 20
)

// log reads the log of the agent or of one of its init containers; of an
// agent that does not run, the log of its last run.
func (s *Source) log(ctx context.Context, agent cilium.Agent, item evidence.Item, q source.Query) (source.Artifact, error) {
	a := source.Artifact{Query: q}
	container := agent.Container
	if q.Topic == source.InitLog {
		// The argument becomes part of a file's name in a snapshot.
		if container = q.Arg; container == "" {
			return a, fmt.Errorf("no init container named: %w", source.ErrAbsent)
		}
		if agent.Running && agent.Ready {
			return a, fmt.Errorf("the agent is past its init containers: %w", source.ErrAbsent)
		}
	}
	if _, err := item.Spec.Forms[0].File(q); err != nil {
		return a, fmt.Errorf("%w: %w", source.ErrAbsent, err)
	}
	ctx, cancel := context.WithTimeout(ctx, item.Timeout)
	defer cancel()
	data, err := s.kube.Log(ctx, agent.Namespace, agent.Pod, container, kube.LogOptions{Lines: logLines, Bytes: int64(item.Cap)})
	if err != nil {
		return a, err
	}
	a.Data, a.Format, a.Stem, a.Read = data, source.Text, item.Spec.Forms[0].Stem, s.options.Now()
	a.Origin = fmt.Sprintf("log of container %s in pod %s/%s", container, agent.Namespace, agent.Pod)
	return a, nil
}

// logLines is how much of a log is kept: about the last ten minutes of an
// agent that is in trouble.
const logLines = 500
