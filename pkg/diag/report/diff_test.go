package report_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/checks"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

const fixtures = "../../../test/fixtures/"

func judged(t *testing.T, dir string, sel diag.Selection) *diag.Run {
	t.Helper()
	src, err := source.OpenSnapshot(dir)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = src.Close() })
	run, err := diag.Do(t.Context(), src, sel, checks.All(), report.DiffFacts()...)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func diff(t *testing.T, before, after string) *report.Document {
	t.Helper()
	return report.Compare(judged(t, fixtures+before, diag.Selection{}), judged(t, fixtures+after, diag.Selection{}), report.Options{Command: "diff", Now: time.Unix(0, 0)})
}

// TestDiffWithItself: nothing is different from itself, in any recording, and
// what cannot be compared is missing on both sides.
func TestDiffWithItself(t *testing.T) {
	for _, root := range []string{fixtures, "../../../test/corpus/"} {
		entries, err := os.ReadDir(root)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !e.IsDir() {
				continue
			}
			t.Run(e.Name(), func(t *testing.T) {
				dir := filepath.Join(root, e.Name())
				d := report.Compare(judged(t, dir, diag.Selection{}), judged(t, dir, diag.Selection{}), report.Options{})
				x := d.Diff
				if n := len(x.New) + len(x.Gone) + len(x.Changed) + len(x.Came) + len(x.Went) + len(x.Properties) + len(x.Settings) + len(x.Frontends); n > 0 {
					t.Errorf("%d differences: %+v", n, x)
				}
				for _, u := range x.Uncompared {
					if u.Side != "both" || u.Reason == "" {
						t.Errorf("not compared: %+v", u)
					}
				}
				want := report.ExitOK
				if len(x.Uncompared) > 0 {
					want = report.ExitUnknown
				}
				if d.Verdict.ExitCode != want {
					t.Errorf("exit %d (%s) with %d things not compared", d.Verdict.ExitCode, d.Verdict.Text, len(x.Uncompared))
				}
			})
		}
	}
}

// TestDiffMirrored: what is new one way is gone the other way.
func TestDiffMirrored(t *testing.T) {
	states := []string{"lab-kpr", "lab-slot-changed", "lab-agent-down", "lab-config-pending", "lab-kpr-residue", "lab-kube-proxy-nft", "lab-local-policy"}
	for _, a := range states {
		for _, b := range states {
			there, back := diff(t, a, b), diff(t, b, a)
			if a != b && there.Verdict.ExitCode != report.ExitFound {
				t.Errorf("%s and %s: exit %d, %s", a, b, there.Verdict.ExitCode, there.Verdict.Text)
			}
			if keys(there.Diff.New) != keys(back.Diff.Gone) || keys(there.Diff.Gone) != keys(back.Diff.New) {
				t.Errorf("%s to %s: new %s, gone %s; back: new %s, gone %s", a, b, keys(there.Diff.New), keys(there.Diff.Gone), keys(back.Diff.New), keys(back.Diff.Gone))
			}
			if x, y := len(there.Diff.Frontends), len(back.Diff.Frontends); x != y {
				t.Errorf("%s to %s: %d changes of frontends, %d back", a, b, x, y)
			}
			if x, y := len(there.Diff.Settings)+len(there.Diff.Properties), len(back.Diff.Settings)+len(back.Diff.Properties); x != y {
				t.Errorf("%s to %s: %d settings and properties, %d back", a, b, x, y)
			}
		}
	}
}

func keys(fs []report.Finding) string {
	var out []string
	for _, f := range fs {
		out = append(out, f.Key)
	}
	slices.Sort(out)
	raw, _ := json.Marshal(out)
	return string(raw)
}

func TestDiffOfADamagedMap(t *testing.T) {
	d := diff(t, "lab-kpr", "lab-slot-changed")
	want := []report.FrontendChange{
		{Layer: "kernel", Frontend: "10.96.135.90:80/TCP", Service: "shop/web", What: "backend gone", Backend: "10.244.0.185:8080/TCP", Before: "active", Nodes: []string{"kpr-w1"}},
		{Layer: "kernel", Frontend: "10.96.135.90:80/TCP", Service: "shop/web", What: "backend new", Backend: "172.30.0.11:6443/TCP", After: "active", Nodes: []string{"kpr-w1"}},
	}
	if x := cmp.Diff(want, d.Diff.Frontends); x != "" {
		t.Errorf("frontends (-want +got):\n%s", x)
	}
	if len(d.Diff.New) != 2 || len(d.Diff.Gone)+len(d.Diff.Changed)+len(d.Diff.Settings)+len(d.Diff.Properties)+len(d.Diff.Uncompared) != 0 {
		t.Errorf("besides: %+v", d.Diff)
	}
}

func TestDiffOfKubeProxy(t *testing.T) {
	d := diff(t, "lab-kube-proxy-nft", "lab-kpr")
	i := slices.IndexFunc(d.Diff.Properties, func(p report.PropertyChange) bool { return p.Property == "kube-proxy" })
	if i < 0 || d.Diff.Properties[i].After != "not running" || len(d.Diff.Properties[i].Nodes) != 3 {
		t.Errorf("properties: %+v", d.Diff.Properties)
	}
	i = slices.IndexFunc(d.Diff.Settings, func(s report.SettingChange) bool {
		return s.Key == "kube-proxy-replacement" && s.In == "cilium-config"
	})
	if i < 0 || *d.Diff.Settings[i].Before != "false" || *d.Diff.Settings[i].After != "true" {
		t.Errorf("settings: %+v", d.Diff.Settings)
	}
}

// TestDiffOfNodes: nodes that are on one side only came or went, and their
// findings are not gone.
func TestDiffOfNodes(t *testing.T) {
	all := judged(t, fixtures+"lab-slot-changed", diag.Selection{})
	some := judged(t, fixtures+"lab-slot-changed", diag.Selection{Nodes: []string{"kpr-cp", "kpr-w2"}})
	d := report.Compare(all, some, report.Options{})
	if x := cmp.Diff([]string{"kpr-w1"}, d.Diff.Went); x != "" || len(d.Diff.Came) != 0 || len(d.Diff.Gone) != 0 || len(d.Diff.New) != 0 {
		t.Errorf("went %v, came %v, gone %v", d.Diff.Went, d.Diff.Came, d.Diff.Gone)
	}
	if d = report.Compare(some, all, report.Options{}); len(d.Diff.Came) != 1 || len(d.Diff.New) != 2 || d.Verdict.ExitCode != report.ExitFound {
		t.Errorf("came %v, new %v: %s", d.Diff.Came, d.Diff.New, d.Verdict.Text)
	}
}

// TestDiffIsBlind: what one side could not see is neither new nor gone.
func TestDiffIsBlind(t *testing.T) {
	d := diff(t, "lab-slot-changed", "lab-agent-down") // kpr-w1 has the damaged map, and then no agent
	for _, f := range d.Diff.Gone {
		if f.Rule == "agent-vs-bpf" {
			t.Errorf("gone, though nobody could look: %+v", f)
		}
	}
	if i := slices.IndexFunc(d.Diff.Uncompared, func(u report.Uncompared) bool {
		return u.What == "rule agent-vs-bpf" && u.Side == "after" && slices.Contains(u.Nodes, "kpr-w1")
	}); i < 0 {
		t.Errorf("not compared: %+v", d.Diff.Uncompared)
	}
}

func TestDiffJSONIsWhole(t *testing.T) {
	d := diff(t, "lab-kube-proxy-nft", "lab-agent-down")
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var again report.Document
	if err := json.Unmarshal(raw, &again); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(*d, again) {
		t.Errorf("read back it differs:\n%s", cmp.Diff(*d, again))
	}
}
