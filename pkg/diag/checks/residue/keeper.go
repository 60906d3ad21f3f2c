package residue

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// keeper is who has to do with kube-proxy's rules on a node.
type keeper struct {
	running fact.Answer // kube-proxy
	how     string      // how that is known, in words; "" where it is not
	mode    string      // kube-proxy's, "" if not told
	kpr     agent.Mode  // of the node's agent, "" if not known
	missing error       // why running is not known
}

// partOff holds where the agent leaves all or some of kube-proxy's work to it.
func (k keeper) partOff() bool { return k.kpr != "" && k.kpr != agent.ModeTrue }

// wanted holds where kube-proxy has a part in the datapath by the agent's own
// word, and nothing says that it is gone.
func (k keeper) wanted() bool { return k.partOff() && k.running != fact.No }

// keeperOf reads fact.KubeProxy, fact.DaemonSets and fact.Status.
func keeperOf(v *fact.View) keeper {
	var k keeper
	if st, _ := fact.Status.From(v); st != nil {
		k.kpr = st.Mode
	}
	proxy, _ := fact.KubeProxy.From(v)
	k.running, k.mode, k.missing = proxy.Running, proxy.Mode, proxy.Missing
	k.how = strings.Join(proxy.Proof, "; ")
	if k.running == fact.Yes && proxy.As != "" {
		k.how = proxy.As
	}
	if k.running != fact.NotKnown {
		return k
	}
	// A DaemonSet with a ready pod on as many nodes as there are has one here.
	sets, _ := fact.DaemonSets.From(v)
	i := slices.IndexFunc(sets, func(ds appsv1.DaemonSet) bool { return ds.Name == "kube-proxy" })
	if i < 0 {
		return k
	}
	s := sets[i].Status
	if s.DesiredNumberScheduled == 0 && s.ObservedGeneration > 0 { // a node selector that no node has
		k.running = fact.No
		k.how = fmt.Sprintf("DaemonSet %s/%s wants no pod on any node", sets[i].Namespace, sets[i].Name)
		return k
	}
	if s.NumberReady > 0 && s.NumberReady == s.DesiredNumberScheduled && int(s.NumberReady) >= len(v.Nodes()) {
		k.running = fact.Yes
		k.how = fmt.Sprintf("DaemonSet %s/%s has %d of %d pods ready", sets[i].Namespace, sets[i].Name, s.NumberReady, s.DesiredNumberScheduled)
	}
	return k
}

// unwanted is the reason why a node has no part in this, "" if it has.
func unwanted(v *fact.View) string {
	if a, err := fact.AgentOf.From(v); err == nil && a.Life == fact.Unwanted {
		return a.Reason
	}
	return ""
}

// look is the command that shows all of it for one node.
func look(node string) []string {
	return []string{"kubectl", "kpr", "residue", "--node", node, "-o", "wide"}
}

// some names up to three items and counts the others.
func some(items []string) string {
	if len(items) <= 3 {
		return strings.Join(items, ", ")
	}
	return fmt.Sprintf("%s +%d more", strings.Join(items[:3], ", "), len(items)-3)
}
