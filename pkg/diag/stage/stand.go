package stage

import (
	"fmt"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// Stand is where a node stands.
type Stand struct {
	// Stage is 0, 1 or 2; -1 where the node is between stages or not known.
	Stage int
	// Apart says that no Cilium is meant to be on the node, so that no stage
	// applies to it.
	Apart bool
	Mode  agent.Mode  // of the replacement, "" if it is not known
	Proxy fact.Answer // whether kube-proxy runs
	Words string      // "KPR True, kube-proxy running (iptables)"
	// Missing is why the node's stand is not known.
	Missing error
}

// Facts are what decides where a node stands.
func Facts() []fact.Named { return []fact.Named{fact.AgentOf, fact.Status, fact.KubeProxy} }

// StandOf tells where the node of the view stands.
func StandOf(v *fact.View) Stand {
	s := Stand{Stage: -1}
	life, lifeErr := fact.AgentOf.From(v)
	if lifeErr == nil && life.Life == fact.Unwanted {
		s.Apart, s.Words = true, "no Cilium agent is meant to be here"
		return s
	}
	proxy, proxyErr := fact.KubeProxy.From(v)
	s.Proxy = proxy.Running
	status, statusErr := fact.Status.From(v)
	if status != nil {
		s.Mode = status.Mode
	}
	s.Words = words(s, proxy)
	switch {
	case status == nil || s.Mode == "":
		s.Missing = first(statusErr, life.Reason, "the agent does not say whether it replaces kube-proxy")
	case proxyErr != nil || s.Proxy == fact.NotKnown:
		s.Missing = first(proxyErr, reason(proxy.Missing), "whether kube-proxy runs is not known")
	case s.Mode == agent.ModeTrue && s.Proxy == fact.No:
		s.Stage = 2
	case s.Mode == agent.ModeTrue:
		s.Stage = 1
	case s.Mode == agent.ModeFalse && s.Proxy == fact.Yes:
		s.Stage = 0
	}
	return s
}

func first(err error, more ...string) error {
	if err != nil {
		return err
	}
	for _, m := range more {
		if m != "" {
			return fmt.Errorf("%s", m)
		}
	}
	return nil
}

func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func words(s Stand, proxy fact.Proxy) string {
	mode := "KPR not known"
	if s.Mode != "" {
		mode = "KPR " + string(s.Mode)
	}
	switch s.Proxy {
	case fact.Yes:
		mode += ", kube-proxy running"
		if proxy.Mode != "" {
			mode += " (" + proxy.Mode + ")"
		}
	case fact.No:
		mode += ", kube-proxy not running"
	default:
		mode += ", whether kube-proxy runs is not known"
	}
	return mode
}

// Detect is the stage that the cluster stands at: that of its last node. Nodes
// between stages do not decide; the checkpoint finds them.
func Detect(v *fact.View) Stage {
	lowest := -1
	for _, n := range v.Nodes() {
		if s := StandOf(v.On(n.Name)); s.Stage >= 0 && (lowest < 0 || s.Stage < lowest) {
			lowest = s.Stage
		}
	}
	found, err := Of(max(lowest, 0))
	if err != nil {
		return preflight()
	}
	return found
}
