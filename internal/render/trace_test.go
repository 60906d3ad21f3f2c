package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/trace"
)

// hostile tries to break out of every format.
const hostile = "a\"]; x -> y \\N <script>alert(1)</script> | `z` \x1b[31m\u202e#end {b} &amp;"

// tracedDocument has a frontend that 40 nodes hold in two ways, with 30
// backends of which one is lost.
func tracedDocument() *report.Document {
	d := document()
	d.Command, d.Nodes, d.Findings = "trace", []report.Node{}, nil
	group := func(first, last int) trace.Group {
		g := trace.Group{State: trace.OK, Severity: "info", Text: "API, agent and kernel agree: 30 backends",
			Paths: []trace.Path{{Client: "from outside", Hops: []trace.Hop{{At: "client", Text: hostile}, {At: "reply", Text: "back"}}}}}
		for i := first; i < last; i++ {
			g.Nodes = append(g.Nodes, fmt.Sprintf("n%02d", i))
		}
		for i := range 30 {
			g.Backends = append(g.Backends, trace.Backend{Address: fmt.Sprintf("10.0.0.%d:80", i), Pod: fmt.Sprintf("a-very-long-name-of-a-workload-7d9f8c-%05d", i),
				Node: "n01", API: "active", Agent: "active", Kernel: "present"})
		}
		return g
	}
	bad := group(0, 1)
	bad.State, bad.Severity, bad.Layer, bad.Text = trace.Behind, "error", trace.Kernel, "the map has lost one: "+hostile
	bad.Share, bad.Outcome = "about 3% of new connections", "fail"
	bad.Backends[29].Kernel, bad.Backends[29].Behind = trace.LostWord, trace.Kernel
	front := trace.Frontend{Address: "10.96.0.1:80/TCP", Type: "ClusterIP", Groups: []trace.Group{bad, group(1, 40)}}
	twin := front
	twin.Address, twin.Type = "0.0.0.0:30080/TCP", "NodePort"
	d.Follow(&trace.Trace{
		Target: "service/shop/web", Client: trace.Client{Kind: trace.AnyClient},
		Verdict: trace.Verdict{State: trace.Behind, Severity: "error", Layer: trace.Kernel, Text: "shop/web: " + hostile,
			Next: []trace.Next{{Why: "look", Argv: []string{"kubectl", "x", hostile}}}},
		Services: []trace.Service{{Namespace: "shop", Name: "web", Frontends: []trace.Frontend{front, twin}, Absent: []trace.Absent{}}},
	}, 2)
	return d
}

func TestTraceTextCapsAndFolds(t *testing.T) {
	d := tracedDocument()
	for _, columns := range []int{80, 200} {
		out := draw(t, d, Options{Width: columns})
		for _, line := range strings.Split(out, "\n") {
			if width(line) > columns && !strings.Contains(line, "look:") {
				t.Errorf("%d columns: %d in %q", columns, width(line), line)
			}
		}
		if !strings.Contains(out, "+20 more (-o wide)") || !strings.Contains(out, "n01, n02, n03, n04, n05 +34 more") {
			t.Errorf("not capped:\n%s", out)
		}
		if first := strings.Index(out, "10.0.0.29:80"); first < 0 || first > strings.Index(out, "10.0.0.0:80") {
			t.Errorf("what is lost does not come first:\n%s", out)
		}
		if strings.Count(out, "✗ n00:") != 1 || !strings.Contains(out, "ClusterIP 10.96.0.1:80/TCP, NodePort 0.0.0.0:30080/TCP") {
			t.Errorf("frontends that read alike are told twice:\n%s", out)
		}
		if strings.ContainsAny(out, "\x1b\u202e") {
			t.Error("control characters came through")
		}
	}
	if out := draw(t, d, Options{Format: "wide"}); strings.Contains(out, "(-o wide)") {
		t.Error("wide is capped")
	}
	for _, r := range draw(t, tracedDocument(), Options{ASCII: true}) {
		if r > 126 && r != '�' {
			t.Fatalf("%q in ASCII output", r)
		}
	}
}

func TestTraceColourOnlyRepeats(t *testing.T) {
	plain, colour := draw(t, tracedDocument(), Options{}), draw(t, tracedDocument(), Options{Color: true})
	for _, code := range []string{"31", "32", "33", "35", "36", "1", "0"} {
		colour = strings.ReplaceAll(colour, "\x1b["+code+"m", "")
	}
	if diff := cmp.Diff(plain, colour); diff != "" {
		t.Error(diff)
	}
}

func TestTraceJSONIsTheDocument(t *testing.T) {
	want := draw(t, tracedDocument(), Options{Format: "json"})
	var back report.Document
	if err := json.Unmarshal([]byte(want), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, draw(t, &back, Options{Format: "json"})); diff != "" {
		t.Error(diff)
	}
}

// TestGraphsEscape holds that nothing of a cluster gets out of its label.
func TestGraphsEscape(t *testing.T) {
	out := draw(t, tracedDocument(), Options{Format: "dot"})
	for _, line := range strings.Split(out, "\n") {
		quotes := strings.Count(strings.ReplaceAll(line, `\\`, ""), `"`) - strings.Count(strings.ReplaceAll(line, `\\`, ""), `\"`)
		if quotes%2 != 0 {
			t.Errorf("a quote is open: %s", line)
		}
	}
	if !strings.Contains(out, `\\N`) || strings.Contains(out, "\x1b") {
		t.Errorf("a backslash came through:\n%s", out)
	}
	out = draw(t, tracedDocument(), Options{Format: "mermaid"})
	for _, bad := range []string{"<script", "\x1b", "{b}", "`z`", "| `"} {
		if strings.Contains(out, bad) {
			t.Errorf("%q came through:\n%s", bad, out)
		}
	}
	out = draw(t, tracedDocument(), Options{Format: "markdown"})
	for _, bad := range []string{"<script", " | `z`"} {
		for _, line := range strings.Split(out, "\n") {
			if strings.Contains(line, bad) && !strings.Contains(line, "look:") {
				t.Errorf("%q came through: %s", bad, line)
			}
		}
	}
	for _, f := range TraceFormats() {
		if slices.Contains(templates, f) {
			continue // they need a template, and have tests of their own
		}
		if draw(t, tracedDocument(), Options{Format: f}) == "" {
			t.Errorf("%s is empty", f)
		}
	}
	if err := Document(&strings.Builder{}, tracedDocument(), Options{Format: "junit"}); err == nil {
		t.Error("a format that traces do not have was drawn")
	}
}
