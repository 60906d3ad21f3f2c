package stage

import (
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// checkpoint is the rule about nodes that are not where a stage wants them.
var checkpoint = &diag.Rule{
	Name: "checkpoint", Severity: diag.Error,
	Title: "a node is not where the stage of the migration wants it",
	Doc: `Each stage of the move from kube-proxy to Cilium's replacement ends with the same question to every node: what does its agent say that it replaces, and does kube-proxy
run there? At stage 0 kube-proxy runs and KPR is off, at stage 1 both are there, from stage 2 on the agent replaces kube-proxy and it is proven that kube-proxy does not run.

Configuration proves nothing here: agents read it when they start, and a DaemonSet counts pods as ready that still run the old one. So the roll has to be finished as well
(observedGeneration, updated pods), and each node is asked for itself. A node that cannot be asked is not at the stage.`,
	Proof: []string{
		"kubectl kpr status -o wide",
		"kubectl kpr exec NODE -- cilium-dbg status --verbose",
		"kubectl -n kube-system get daemonset cilium -o jsonpath='{.metadata.generation} {.status}'",
	},
	Remedy:  `Finish the step on the nodes that are named, or take it back on all of them. Do not begin the next stage.`,
	Sources: []string{"cilium/cilium#35440", "k3s-io/k3s#1641"},
}

// Rules lists the rules that stages have of their own.
func Rules() []*diag.Rule { return []*diag.Rule{checkpoint, againstBaseline, noBackup} }

// Undecided is a stage that becomes the one that the cluster stands at when
// its checkpoint runs.
func Undecided() Stage { return Stage{Number: -1} }

// Checkpoint is the check whether every node stands at the stage. The baseline
// may be nil.
func (s *Stage) Checkpoint(baseline *Baseline) *diag.Check {
	return &diag.Check{
		Name:  checkpoint.Name,
		Doc:   "whether every node is where the stage wants it",
		Scope: diag.OfCluster,
		Rules: []*diag.Rule{checkpoint},
		Wants: append([]fact.Named{fact.AgentSets}, Facts()...),
		Run: func(p *diag.Pass) error {
			if s.Number < 0 {
				*s = Detect(p.View())
			}
			rolled(p)
			for _, n := range p.View().Nodes() {
				s.node(p.On(n.Name))
			}
			if s.Number == 3 && baseline != nil {
				restarts(p, baseline)
			}
			return nil
		},
	}
}

// rolled checks that the agents' roll is over, which no stage can do without.
func rolled(p *diag.Pass) {
	sets, err := fact.AgentSets.From(p.View())
	if err != nil {
		p.Unknown(fact.AgentSets.ID(), err)
		return
	}
	for i := range sets {
		if open := RollOpen(&sets[i]); open != "" {
			p.Find(checkpoint, diag.Report{
				Subject: "daemonset/" + sets[i].Namespace + "/" + sets[i].Name, Severity: diag.Error, Proof: []fact.Named{fact.AgentSets},
				Message: "the roll of the agents is not finished: " + open,
				Next:    []string{"kubectl", "-n", sets[i].Namespace, "rollout", "status", "daemonset/" + sets[i].Name},
			})
		}
	}
}

// RollOpen says what keeps a DaemonSet's roll from being finished, "" if
// nothing does. Ready pods alone prove nothing: old ones are ready too.
func RollOpen(ds *appsv1.DaemonSet) string {
	switch st := ds.Status; {
	case st.ObservedGeneration < ds.Generation:
		return fmt.Sprintf("the controller has seen generation %d of %d", st.ObservedGeneration, ds.Generation)
	case st.UpdatedNumberScheduled < st.DesiredNumberScheduled:
		return fmt.Sprintf("%d of %d pods are updated", st.UpdatedNumberScheduled, st.DesiredNumberScheduled)
	case st.NumberReady < st.DesiredNumberScheduled:
		return fmt.Sprintf("%d of %d pods are ready", st.NumberReady, st.DesiredNumberScheduled)
	}
	return ""
}

func (s *Stage) node(p *diag.Pass) {
	stand := StandOf(p.View())
	if stand.Apart {
		return
	}
	fault, known := s.fault(stand)
	switch {
	case fault != "":
		p.Find(checkpoint, diag.Report{
			Subject: "node/" + p.Node(), Severity: diag.Error, Proof: []fact.Named{fact.Status, fact.KubeProxy},
			Message: fmt.Sprintf("%s (%s): stage %d wants %s", fault, stand.Words, s.Number, s.wish()),
			Next:    []string{"kubectl", "kpr", "status", "--node", p.Node(), "-o", "wide"},
		})
	case !known:
		err := stand.Missing
		if err == nil {
			err = errors.New("where the node stands is not known")
		}
		p.Unknown(checkpointFact, err)
	}
}

// checkpointFact names what is missing where a stand is not known.
const checkpointFact = fact.ID("stand")

// fault says what is wrong with a stand; known is false where what is missing
// could still be wrong.
func (s *Stage) fault(stand Stand) (fault string, known bool) {
	wantKPR, wantProxy := s.Number > 0, s.Number < 2
	switch {
	case wantKPR && stand.Mode != "" && stand.Mode != agent.ModeTrue:
		return "the agent does not replace kube-proxy", true
	case !wantKPR && stand.Mode != "" && stand.Mode != agent.ModeFalse:
		return "the agent replaces kube-proxy already", true
	case wantProxy && stand.Proxy == fact.No && s.Number == 0:
		return "no kube-proxy runs", true
	case !wantProxy && stand.Proxy == fact.Yes:
		return "kube-proxy still runs", true
	case stand.Mode == "":
		return "", false
	}
	// At stage 1 a kube-proxy that is gone already does no harm.
	return "", stand.Proxy != fact.NotKnown || s.Number == 1
}

func (s *Stage) wish() string {
	return [...]string{"kube-proxy running and KPR off", "KPR on", "KPR on and kube-proxy gone", "KPR on and kube-proxy gone"}[s.Number]
}

// restarts finds agents that restarted by themselves since the baseline.
func restarts(p *diag.Pass, before *Baseline) {
	for _, n := range p.View().Nodes() {
		q := p.On(n.Name)
		now, err := fact.AgentOf.From(q.View())
		was, ok := before.Restarts[n.Name]
		if err != nil || !ok || now.Pod != was.Pod || now.Restarts <= was.Count {
			continue
		}
		q.Find(checkpoint, diag.Report{
			Subject: "node/" + n.Name, Address: "restarts", Severity: diag.Warning, Proof: []fact.Named{fact.AgentOf},
			Message: fmt.Sprintf("the agent restarted %d times since %s", now.Restarts-was.Count, before.Time.UTC().Format(time.RFC3339)),
			Next:    []string{"kubectl", "kpr", "exec", n.Name, "--", "cilium-dbg", "status"},
		})
	}
}
