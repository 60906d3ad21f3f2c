package report

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func node(i int, mode, proxy string) Node {
	n := Node{Name: fmt.Sprintf("n%d", i), Agent: Agent{State: "running", Health: "Ok"}, KubeProxy: KubeProxy{Running: proxy}, APIServer: "h:1"}
	if mode != "" {
		n.KPR = &KPR{Mode: mode}
	}
	return n
}

func TestGridPutsTheMajorityFirstAndUnknownLast(t *testing.T) {
	nodes := []Node{node(1, "", "no"), node(2, "", "no"), node(3, "True", "no"), node(4, "False", "yes"), node(5, "True", "not known")}
	got := map[string]Property{}
	for _, p := range Grid(nodes) {
		got[p.Name] = p
	}
	want := Property{Name: "KPR mode", Value: "True", Count: 2, Else: []Group{{"False", []string{"n4"}}, {NotKnown, []string{"n1", "n2"}}}}
	if diff := cmp.Diff(want, got["KPR mode"]); diff != "" {
		t.Error(diff)
	}
	if p := got["kube-proxy"]; p.Value != "not running" || p.Count != 3 {
		t.Errorf("%+v", p)
	}
}

func TestStateInWords(t *testing.T) {
	for _, tc := range []struct {
		nodes      []Node
		kpr, proxy string
	}{
		{nil, "no node is known", ""},
		{[]Node{node(1, "True", "no")}, "KPR is active on the only node", "kube-proxy runs on none"},
		{[]Node{node(1, "True", "no"), node(2, "True", "no")}, "KPR is active on both nodes", "kube-proxy runs on none"},
		{[]Node{node(1, "False", "yes"), node(2, "False", "yes"), node(3, "False", "yes")}, "KPR is off on all 3 nodes", "kube-proxy runs on all 3 nodes"},
		{[]Node{node(1, "", "not known"), node(2, "", "not known")}, "whether KPR is active is not known on any of 2 nodes", "whether kube-proxy runs is not known"},
		{[]Node{node(1, "True", "yes"), node(2, "Partial", "no"), node(3, "False", "not known"), node(4, "", "no")},
			"KPR is active on 1 of 4 nodes, partial on 1, off on 1, not known on 1", "kube-proxy runs on 1 of 4 (not known on 1)"},
		{[]Node{node(1, "True", "no"), {Name: "win", Agent: Agent{State: "not wanted"}, KubeProxy: KubeProxy{Running: "no"}}},
			"KPR is active on the only node", "kube-proxy runs on none"},
	} {
		if got := stateOfKPR(tc.nodes); got != tc.kpr {
			t.Errorf("%q, want %q", got, tc.kpr)
		}
		if got := stateOfProxy(tc.nodes); got != tc.proxy {
			t.Errorf("%q, want %q", got, tc.proxy)
		}
	}
}
