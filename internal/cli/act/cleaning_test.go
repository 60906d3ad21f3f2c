package act

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
	"github.com/kubectl-kpr/kubectl-kpr/internal/residue"
)

var update = flag.Bool("update", false, "write what the commands print into testdata")

func golden(t *testing.T, name, got string) {
	t.Helper()
	name = "testdata/" + name + ".txt"
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", name, diff)
	}
}

func proposals() []*residue.Proposal {
	var all []*residue.Proposal
	for _, n := range []string{"cp-1", "w-1", "w-2", "w-3", "w-4", "w-5", "w-6"} {
		all = append(all, &residue.Proposal{Node: n, IPTables: []residue.TableOf{
			{Backend: "nft", Family: 4, Table: "nat", Rows: 12, Chains: []string{"KUBE-MARK-MASQ", "KUBE-SEP-AAAAAAAAAAAAAAAA", "KUBE-SERVICES", "KUBE-SEP-BBBBBBBBBBBBBBBB"},
				Jumps: []string{`-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES`}},
			{Backend: "legacy", Family: 6, Table: "mangle", Chains: []string{"KUBE-PROXY-CANARY"}},
		}})
	}
	all[1].NFTables = []string{"ip kube-proxy"}
	all[1].Stays = []residue.Staying{{Table: "nat", Chain: "KUBE-MARK-MASQ", By: "-A MINE\x1b[2J -j KUBE-MARK-MASQ"}, {Table: "nat", Chain: "KUBE-POSTROUTING"}}
	all[1].Unlooked = []string{"tables of nftables: the host has no nft"}
	all[2].IPTables = nil
	all[2].IPVS = &residue.IPVS{Device: true, Addresses: []string{"10.96.0.1/32"}, Sets: []string{"create KUBE-CLUSTER-IP hash:ip"}, Servers: []string{"-A -t 10.96.0.1:443 -s rr"}}
	all[3].IPTables = nil // clean already
	return all
}

// TestPlanText is what an operator reads before the question.
func TestPlanText(t *testing.T) {
	for name, test := range map[string]struct {
		view view
		wide bool
		back bool
	}{
		"plan":      {view{Looked: 7, Nodes: proposals()}, false, false},
		"plan-wide": {view{Looked: 7, Nodes: proposals()}, true, false},
		"plan-back": {view{Looked: 1, Nodes: proposals()[:1]}, false, true},
		"plan-dark": {view{Looked: 7, Nodes: []*residue.Proposal{{Node: "w-1", Unlooked: []string{"tables of nftables: the host has no nft"}}}}, false, false},
		"plan-none": {view{Looked: 7, Nodes: proposals()[3:4]}, false, false},
	} {
		var b strings.Builder
		test.view.text(&b, test.wide, test.back)
		golden(t, name, b.String())
	}
}

// TestResultText is what an operator reads at the end.
func TestResultText(t *testing.T) {
	kept := &residue.Kept{Node: "w-1", Path: "/var/lib/kubectl-kpr/x.json", Chains: 48, Rows: 126, Tables: 2}
	nodes := []nodeResult{{Node: "w-1", State: plan.Complete, Backup: kept}, {Node: "w-2", State: plan.Complete, Backup: kept}, {Node: "w-3", State: plan.Halfway, Failed: "verify: x"}, {Node: "w-4", State: plan.Waiting}}
	for name, test := range map[string]struct {
		result    result
		restoring bool
	}{
		"result-clean":   {result{Verb: "clean", Done: true, Journal: "kube-system/kpr-journal-a", Nodes: nodes[:2]}, false},
		"result-restore": {result{Verb: "restore", Done: true, Journal: "kube-system/kpr-journal-a", Nodes: nodes[:2]}, true},
		"result-undo":    {result{Verb: "undo", Done: true, Journal: "kube-system/kpr-journal-a", Nodes: nodes[3:]}, false},
		"result-closed":  {result{Verb: "clean", Closed: true, Journal: "kube-system/kpr-journal-a", Nodes: nodes[:2]}, false},
		"result-stopped": {result{Verb: "clean", Journal: "kube-system/kpr-journal-a", Nodes: nodes}, false},
	} {
		golden(t, name, test.result.text("kpr-a", test.restoring))
	}
}

func TestNewID(t *testing.T) {
	if id := newID("residue-clean", time.Date(2026, 12, 1, 2, 3, 4, 0, time.FixedZone("", 3600))); id != "residue-clean-20261201-010304" {
		t.Error(id)
	}
}
