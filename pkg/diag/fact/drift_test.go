package fact_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// TestDrift reads recorded clusters: the marked rows of each, by node.
func TestDrift(t *testing.T) {
	for dir, want := range map[string][]string{
		"fixtures/lab-kpr":                    {"all bpf-lb-sock false true forced by KPR"},
		"fixtures/lab-config-pending":         {"all bpf-lb-algorithm maglev random restart pending", "all bpf-lb-sock false true forced by KPR"},
		"fixtures/lab-kube-proxy-nft":         nil,
		"corpus/host-routing-legacy-forced":   {"all enable-host-legacy-routing false true silently dropped"},
		"corpus/helm-upgrade-no-restart":      {"all bpf-lb-acceleration disabled native restart pending"},
		"corpus/strict-set-status-disabled":   {"all kube-proxy-replacement strict false restart pending"},
		"corpus/kops-mixed-modes":             {"m-1 enable-node-port true false restart pending", "m-1 kube-proxy-replacement strict false restart pending"},
		"corpus/healthy-kpr-false-kube-proxy": nil,
		"corpus/healthy-110":                  nil,
	} {
		t.Run(dir, func(t *testing.T) {
			src, err := source.OpenSnapshot("../../../test/" + dir)
			if err != nil {
				t.Fatal(err)
			}
			nodes, err := src.Nodes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			store := fact.NewStore(nodes)
			if err := src.Collect(t.Context(), store.Queries(fact.Drift), store.Taker(fact.Drift)); err != nil {
				t.Fatal(err)
			}
			by := map[string][]string{}
			for node, r := range fact.Drift.Each(store.Cluster()) {
				for _, row := range r.Value {
					if row.Mark != "" {
						line := fmt.Sprintf("%s %s %s %s", row.Key, row.Told, row.Runs, row.Mark)
						by[line] = append(by[line], node)
						if row.Why == "" {
							t.Errorf("%s: a mark without its why", line)
						}
					}
				}
			}
			var got []string
			for line, on := range by {
				who := strings.Join(on, ",")
				if len(on) == len(nodes) {
					who = "all"
				}
				got = append(got, who+" "+line)
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
