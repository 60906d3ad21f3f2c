package corpus

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestNames(t *testing.T) {
	for words, want := range map[string][]string{
		"default/app-a and default/app-b on w-1":      {"default/app-a", "default/app-b", "w-1"},
		"Service shop/web, port 80 (NodePort 30080).": {"shop/web"},
		"operator and daemonset":                      nil,
		"every node":                                  nil,
		"chain KUBE-SVC-X7: in table nat;":            {"KUBE-SVC-X7", "nat"},
		"w-1,w-2":                                     {"w-1", "w-2"},
		"10.96.0.10:53":                               {"10.96.0.10:53"},
		"→ --- x":                                     {"x"},
		"":                                            nil,
	} {
		if diff := cmp.Diff(want, names(words)); diff != "" {
			t.Errorf("names(%q) (-want +got):\n%s", words, diff)
		}
	}
}

func TestHolds(t *testing.T) {
	for _, tt := range []struct {
		word, text string
		want       bool
	}{
		{"10.0.0.1", "stale 10.0.0.1 here", true},
		{"10.0.0.1", "stale 10.0.0.1.", true},
		{"10.0.0.1", "stale 10.0.0.1:80", true},
		{"10.0.0.1", "stale 10.0.0.10", false},
		{"10.0.0.1", "stale 110.0.0.1", false},
		{"10.0.0.1", "stale 10.0.0.1.5", false},
		{"10.0.0.1", "10.0.0.10 and 10.0.0.1", true},
		{"w-1", "on w-1, w-2", true},
		{"w-1", "on w-10", false},
		{"w-1", "on w-1-a", false},
		{"w-1", "on big-w-1", false},
		{"w-1", "", false},
		{"Shop/Web", "shop/web is", true},
		{"shop/web", "shop/web-np", false},
		{"shop/web", "éshop/web", false},
	} {
		if got := holds(tt.word, tt.text); got != tt.want {
			t.Errorf("holds(%q, %q) = %v, want %v", tt.word, tt.text, got, tt.want)
		}
	}
}

func TestForbids(t *testing.T) {
	both := []string{"error", "warning"}
	for _, tt := range []struct {
		name, line string
		expected   []Expected
		want       Ban
		people     bool
	}{
		{name: "any", line: "any finding above info", want: Ban{Levels: both}},
		{name: "any, bare", line: "any finding", want: Ban{Levels: both}},
		{name: "any, more words", line: "any finding above all", people: true},
		{name: "on an object", line: "a finding for apps/api (Pending is normal)",
			want: Ban{Levels: both, Keys: []string{"apps/api"}}},
		{name: "on an object, any", line: "any finding on default/kubernetes",
			want: Ban{Levels: both, Keys: []string{"default/kubernetes"}}},
		{name: "on nothing named", line: "a finding on the weather", people: true},
		{name: "on a node", line: "a finding on w-1", want: Ban{Levels: both, Nodes: []string{"w-1"}}},
		{name: "on an object, level", line: "an error? a finding for apps/api", people: true},
		{name: "code", line: "KUBE_CHAINS", want: Ban{Rules: []string{"kube-chains"}, Levels: both}},
		{name: "codes", line: "BACKEND_MISSING or FRONTEND_MISSING from the empty map",
			want: Ban{Rules: []string{"backend-missing", "frontend-missing"}, Levels: both}},
		{name: "code as an error", line: "KUBE_PROXY_RUNNING as an error: warning is right",
			want: Ban{Rules: []string{"kube-proxy-running"}, Levels: []string{"error"}}},
		{name: "reason is not read", line: "BACKEND_STALE for 192.192.192.192 (not an error, see w-1)",
			want: Ban{Rules: []string{"backend-stale"}, Levels: both, Keys: []string{"192.192.192.192"}}},
		{name: "address with port", line: "FRONTEND_MISSING for 10.96.11.1:80/TCP",
			want: Ban{Rules: []string{"frontend-missing"}, Levels: both, Keys: []string{"10.96.11.1:80"}}},
		{name: "node", line: "BACKEND_MISSING on w-1 (10.244.2.6 is hinted to zone-b)",
			want: Ban{Rules: []string{"backend-missing"}, Levels: both, Nodes: []string{"w-1"}}},
		{name: "not a node", line: "BACKEND_MISSING for shop/web-1 or x-w-1a",
			want: Ban{Rules: []string{"backend-missing"}, Levels: both, Keys: []string{"shop/web-1"}}},
		{name: "expected itself, level said", line: "SOCKETLB at level error",
			expected: []Expected{{Code: "SOCKETLB", Level: "warning"}},
			want:     Ban{Rules: []string{"socketlb"}, Levels: []string{"error"}}},
		{name: "expected itself, same level", line: "SOCKETLB at level error",
			expected: []Expected{{Code: "SOCKETLB", Level: "error"}}, want: Ban{Rules: []string{"socketlb"}}},
		{name: "expected itself, no level", line: "SOCKETLB as the headline",
			expected: []Expected{{Code: "SOCKETLB", Level: "error"}}, want: Ban{Rules: []string{"socketlb"}}},
		{name: "expected itself, on a node", line: "SOCKETLB on w-1",
			expected: []Expected{{Code: "SOCKETLB", Level: "error"}},
			want:     Ban{Rules: []string{"socketlb"}, Levels: both, Nodes: []string{"w-1"}}},
		{name: "short code", line: "OK", people: true},
		{name: "capitals in a word", line: "KUBEs are fine", people: true},
		{name: "words", line: "blaming kube-proxy", people: true},
		{name: "quoted code", line: "'KUBERNETES_SERVICE_HOST is set, so fine'", people: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := Forbids(tt.line, tt.expected)
			if ok == tt.people {
				t.Fatalf("Forbids(%q): ok = %v", tt.line, ok)
			}
			if diff := cmp.Diff(tt.want, got, emptyIsNil); ok && diff != "" {
				t.Errorf("Forbids(%q) (-want +got):\n%s", tt.line, diff)
			}
		})
	}
}

// emptyIsNil leaves Rules alone: there, nil means every rule.
var emptyIsNil = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() != ".Rules" },
	cmp.FilterValues(func(a, b []string) bool { return len(a)+len(b) == 0 }, cmp.Ignore()))

func TestJudge(t *testing.T) {
	stale := Expected{Code: "BACKEND_STALE", Level: "error", Where: "shop/a and shop/b on w-1", Says: "10.0.0.1 and 10.0.0.2:80"}
	one := Finding{"backend-stale", "error", "shop/a", "w-1", "holds 10.0.0.1:80"}
	two := Finding{"backend-stale", "error", "shop/b", "w-1", "holds 10.0.0.20:80"}
	for _, tt := range []struct {
		name  string
		spec  Spec
		found []Finding
		want  Score
	}{
		{"together", Spec{Expected: []Expected{stale}}, []Finding{one, two},
			Score{Met: []Expected{stale}, Addresses: 2, Named: 1}},
		{"one object missing", Spec{Expected: []Expected{stale}}, []Finding{one},
			Score{Missed: []Expected{stale}, Addresses: 2, Named: 1}},
		{"other severity", Spec{Expected: []Expected{stale}}, []Finding{{"backend-stale", "warning", "shop/a", "w-1", "and shop/b"}},
			Score{Missed: []Expected{stale}, Near: 1, Addresses: 2}},
		{"forbidden by two, told once", Spec{MustNot: []string{"BACKEND_STALE"}, May: []string{"BACKEND_STALE"}}, []Finding{one, two},
			Score{Forbidden: []string{"BACKEND_STALE  <- " + one.String()}}},
		{"forbidden by each", Spec{MustNot: []string{"any finding"}, May: []string{"BACKEND_STALE"}}, []Finding{one, two},
			Score{Forbidden: []string{"any finding  <- " + one.String(), "any finding  <- " + two.String()}}},
		{"incomplete is never forbidden nor extra", Spec{MustNot: []string{"any finding"}},
			[]Finding{{Rule: "incomplete", Severity: "warning"}}, Score{}},
		{"info is never extra", Spec{}, []Finding{{Rule: "kpr-mode", Severity: "info"}}, Score{}},
		{"extra", Spec{May: []string{"MASQ"}}, []Finding{one, {Rule: "masq", Severity: "error"}}, Score{Extra: []string{one.String()}}},
		{"node of the message is not the place", Spec{MustNot: []string{"a finding on w-1"}, May: []string{"MASQ"}},
			[]Finding{{"masq", "error", "w-2", "", "like w-1"}}, Score{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Judge(tt.spec, tt.found)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestOverdue(t *testing.T) {
	p := Pending{Rules: []string{"a", "b", "c", "d"}, Cases: []string{"x", "y"}}
	got := overdue(p, map[string]tally{"b": {2, 2}, "c": {2, 1}, "e": {1, 1}}, map[string]tally{"x": {3, 3}, "y": {3, 2}}, []string{"a", "e"})
	want := []string{
		"pending.yaml: rule a is registered: remove it from the list",
		"pending.yaml: rule b is met wherever it is expected: remove it from the list",
		"pending.yaml: case x is met: remove it from the list",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReadSpec(t *testing.T) {
	cases := fstest.MapFS{
		"good/expected.md": {Data: []byte("# good\n\n```yaml\nsource: x\nexpected:\n- {code: MASQ, level: error, where: w-1, says: it}\nmay: [XDP]\n```\n\n```yaml\nexpected: []\n```\n")},
		"bare/expected.md": {Data: []byte("# bare\n")},
		"open/expected.md": {Data: []byte("```yaml\nexpected: []\n")},
		"half/expected.md": {Data: []byte("```yaml\nexpected:\n- {code: MASQ}\n```\n")},
		"notes/README.md":  {Data: []byte("no case")},
	}
	got, err := ReadSpec(cases, "good")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Spec{Expected: []Expected{{"MASQ", "error", "w-1", "it"}}, May: []string{"XDP"}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, name := range []string{"bare", "open", "half", "none"} {
		if _, err := ReadSpec(cases, name); err == nil {
			t.Errorf("ReadSpec(%s): no error", name)
		}
	}
	names, err := Cases(cases)
	if diff := cmp.Diff([]string{"bare", "good", "half", "open"}, names); err != nil || diff != "" {
		t.Errorf("Cases: %v\n%s", err, diff)
	}
}

// The corpus itself must be readable, and pending.yaml must speak of it.
func TestData(t *testing.T) {
	cases := os.DirFS(".")
	names, err := Cases(cases)
	if err != nil || len(names) < 62 {
		t.Fatalf("%d cases, %v", len(names), err)
	}
	for _, name := range names {
		if _, err := ReadSpec(cases, name); err != nil {
			t.Error(err)
		}
	}
	p, err := ReadPending(cases)
	if err != nil {
		t.Fatal(err)
	}
	plain := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	for i, rule := range p.Rules {
		if !plain.MatchString(rule) || i > 0 && strings.Compare(p.Rules[i-1], rule) >= 0 {
			t.Errorf("pending.yaml: rule %q is not a rule's name in its sorted place", rule)
		}
	}
	for _, name := range p.Cases {
		if !slices.Contains(names, name) {
			t.Errorf("pending.yaml: there is no case %q", name)
		}
	}
}
