package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-kpr/kubectl-kpr/internal/live/livetest"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// got is what a Collect gave for one query.
type got struct {
	artifact source.Artifact
	err      error
}

// collect runs Collect and demands that every query is answered exactly once.
func collect(t *testing.T, s source.Source, qs ...source.Query) map[source.Query]got {
	t.Helper()
	all := map[source.Query]got{}
	err := s.Collect(t.Context(), qs, func(a source.Artifact, err error) {
		if _, twice := all[a.Query]; twice {
			t.Errorf("%v answered twice", a.Query)
		}
		all[a.Query] = got{a, err}
	})
	if err != nil {
		t.Fatalf("Collect: %v", err)
	}
	for _, q := range qs {
		g, ok := all[q]
		if !ok {
			t.Errorf("%v not answered", q)
		}
		classes := 0
		for _, class := range []error{source.ErrAbsent, source.ErrForbidden, source.ErrUnreachable, source.ErrCut} {
			if errors.Is(g.err, class) {
				classes++
			}
		}
		if g.err != nil && classes != 1 {
			t.Errorf("%v: %d classes in error %q", q, classes, g.err)
		}
	}
	return all
}

func open(t *testing.T, server *livetest.Server, change func(*Options)) *Source {
	t.Helper()
	o := Options{Config: server.Config(), Context: "test"}
	if change != nil {
		change(&o)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func on(node string, topics ...source.Topic) []source.Query {
	var qs []source.Query
	for _, t := range topics {
		qs = append(qs, source.Query{Topic: t, Node: node})
	}
	return qs
}

const (
	statusCmd  = "cilium-dbg status -o json"
	serviceCmd = "cilium-dbg service list -o json"
	mapCmd     = "cilium-dbg bpf lb list -o json"
)

func answers(node string) map[string]livetest.Recording {
	return map[string]livetest.Recording{
		statusCmd:  {Stdout: `{"node":"` + node + `"}` + "\n"},
		serviceCmd: {Stdout: `[]`},
		mapCmd:     {Stdout: "{}\n", Stderr: "level=warning msg=noise\n"},
	}
}

// One node hangs, one breaks in the middle of an answer every time, one is
// forbidden. All others are reported, by the deadline.
func TestFortyNodes(t *testing.T) {
	server := livetest.New(t)
	agents := map[string]*livetest.Agent{}
	var qs []source.Query
	for i := range 40 {
		node := fmt.Sprintf("n%02d", i)
		agents[node] = server.AddAgent(node, "1.20.2", answers(node))
		qs = append(qs, on(node, source.Status, source.ServiceList, source.MapList)...)
	}
	agents["n07"].Fault, agents["n07"].Unasked = livetest.Hang, true
	agents["n13"].Fault, agents["n13"].BreakAfter, agents["n13"].Unasked = livetest.Break, 110, true
	agents["n21"].Fault, agents["n21"].Unasked = livetest.Refuse, true
	var steps []int
	s := open(t, server, func(o *Options) {
		o.NodeTimeout = 4 * time.Second
		o.Progress = func(done, total int) { steps = append(steps, done) }
	})
	start := time.Now()
	all := collect(t, s, qs...)
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("took %s", d)
	}
	want := map[string]error{"n07": source.ErrUnreachable, "n13": source.ErrCut, "n21": source.ErrForbidden}
	for q, g := range all {
		if class := want[q.Node]; class != nil {
			if !errors.Is(g.err, class) {
				t.Errorf("%v: error %v, want %v", q, g.err, class)
			}
			continue
		}
		if g.err != nil {
			t.Errorf("%v: %v", q, g.err)
		}
	}
	status := all[source.Query{Topic: source.Status, Node: "n05"}].artifact
	wantArtifact := source.Artifact{Query: source.Query{Topic: source.Status, Node: "n05"}, Format: source.JSON, Stem: "status",
		Data: []byte("{\"node\":\"n05\"}\n"), Origin: statusCmd + " in pod kube-system/cilium-n05", Read: status.Read}
	if d := cmp.Diff(wantArtifact, status); d != "" || status.Read.IsZero() {
		t.Errorf("artifact (-want +got):\n%s", d)
	}
	if msg := all[source.Query{Topic: source.Status, Node: "n21"}].err.Error(); !strings.Contains(msg, "create pods/exec") || !strings.Contains(msg, "n21") {
		t.Errorf("forbidden: %s", msg)
	}
	if n := agents["n13"].Execs(); n != 2 {
		t.Errorf("broken node had %d execs, want one retry", n)
	}
	// A refused WebSocket is tried as SPDY; neither is retried.
	if n := agents["n21"].Execs(); n != 2 {
		t.Errorf("forbidden node had %d execs, want one of each protocol", n)
	}
	if n := agents["n00"].Execs(); n != 1 {
		t.Errorf("healthy node had %d execs", n)
	}
	if len(steps) != 40 || steps[39] != 40 {
		t.Errorf("progress: %v", steps)
	}
}

// Only what was cut or did not come is asked again.
func TestRetryAsksForTheRestOnly(t *testing.T) {
	for _, fault := range []livetest.Fault{livetest.Break, livetest.Leave} {
		server := livetest.New(t)
		a := server.AddAgent("n1", "1.20.2", map[string]livetest.Recording{
			statusCmd:  {Stdout: "{}"},
			serviceCmd: {Stdout: strings.Repeat("x", 1000)},
			mapCmd:     {Stdout: "{}"},
		})
		a.Fault, a.Faults, a.BreakAfter = fault, 1, 600
		all := collect(t, open(t, server, nil), on("n1", source.Status, source.ServiceList, source.MapList)...)
		for q, g := range all {
			if g.err != nil {
				t.Errorf("%v: %v", q, g.err)
			}
		}
		if n := len(all[on("n1", source.ServiceList)[0]].artifact.Data); n != 1000 {
			t.Errorf("service list has %d bytes", n)
		}
		if a.Execs() != 2 || a.Asked(statusCmd) != 1 || a.Asked(serviceCmd) != 2 {
			t.Errorf("%d execs, status asked %d times, service list %d times", a.Execs(), a.Asked(statusCmd), a.Asked(serviceCmd))
		}
	}
}

func TestSilentExecIsRetriedOnce(t *testing.T) {
	for _, faults := range []int{1, 0} {
		server := livetest.New(t)
		a := server.AddAgent("n1", "1.20.2", map[string]livetest.Recording{statusCmd: {Stdout: "{}"}})
		a.Fault, a.Faults, a.Unasked = livetest.Mute, faults, true
		g := collect(t, open(t, server, nil), on("n1", source.Status)...)[on("n1", source.Status)[0]]
		if faults == 1 && g.err != nil || faults == 0 && g.err == nil {
			t.Errorf("%d silent execs: error %v", faults, g.err)
		}
		if a.Execs() != 2 {
			t.Errorf("%d silent execs: %d execs", faults, a.Execs())
		}
	}
}

// What commands print and how they end, through the real script.
func TestAnswers(t *testing.T) {
	nonceLike := "\n0123456789abcdef0123456789abcdef end 0 0\n"
	tests := []struct {
		name   string
		topic  source.Topic
		cmd    string
		answer livetest.Recording
		data   string
		exit   int
		class  error
		words  string
	}{
		{name: "no trailing newline", topic: source.Status, cmd: statusCmd, answer: livetest.Recording{Stdout: `{"a":1}`}, data: `{"a":1}`},
		{name: "trailing newlines", topic: source.Status, cmd: statusCmd, answer: livetest.Recording{Stdout: "\n\n{}\n\n"}, data: "\n\n{}\n\n"},
		{name: "binary", topic: source.Status, cmd: statusCmd, answer: livetest.Recording{Stdout: "\x00\xff\n\r\x01{}"}, data: "\x00\xff\n\r\x01{}"},
		{name: "like a frame", topic: source.Status, cmd: statusCmd, answer: livetest.Recording{Stdout: nonceLike + "end 0 0"}, data: nonceLike + "end 0 0"},
		{name: "noise on stderr", topic: source.Status, cmd: statusCmd, data: "{}",
			answer: livetest.Recording{Stdout: "{}", Stderr: strings.Repeat("level=warning msg=\"no\"\n", 20000)}},
		{name: "empty", topic: source.Status, cmd: statusCmd, answer: livetest.Recording{}, class: source.ErrCut, words: "empty"},
		{name: "empty rules", topic: source.LegacySave, cmd: "iptables-legacy-save -c", answer: livetest.Recording{}},
		{name: "over the cap", topic: source.Version, cmd: "cilium-dbg version -o json", class: source.ErrCut, words: "more than",
			answer: livetest.Recording{Stdout: strings.Repeat("v", 3<<20)}, data: strings.Repeat("v", 1<<20)},
		{name: "fails with an answer", topic: source.Status, cmd: statusCmd, answer: livetest.Recording{Stdout: "{}", Code: 3}, data: "{}", exit: 3},
		{name: "fails with half an answer", topic: source.Status, cmd: statusCmd, class: source.ErrCut, words: "boom",
			answer: livetest.Recording{Stdout: `{"a":`, Stderr: "boom\nmore\n", Code: 1}, data: `{"a":`, exit: 1},
		{name: "fails without an answer", topic: source.Status, cmd: statusCmd, class: source.ErrUnreachable, words: "Error: boom",
			answer: livetest.Recording{Stderr: "\nError: boom\n", Code: 1}, exit: 1},
		{name: "agent down", topic: source.ServiceList, cmd: serviceCmd, class: source.ErrAgentDown, words: "agent does not answer",
			answer: livetest.Recording{Stderr: "Cannot get services list: connect: no such file\nIs the agent running?\n", Code: 1}, exit: 1},
		{name: "unknown command", topic: source.MapsDump, cmd: "cilium-dbg shell -- lb/maps-dump", class: source.ErrAbsent, words: "does not know",
			answer: livetest.Recording{Stderr: "Error: unknown command \"shell\" for \"cilium-dbg\"\n", Code: 1}, exit: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := livetest.New(t)
			server.AddAgent("n1", "1.20.2", map[string]livetest.Recording{tt.cmd: tt.answer})
			g := collect(t, open(t, server, nil), on("n1", tt.topic)...)[on("n1", tt.topic)[0]]
			if !errors.Is(g.err, tt.class) || tt.class == nil && g.err != nil {
				t.Fatalf("error %v, want %v", g.err, tt.class)
			}
			if g.err != nil && !strings.Contains(g.err.Error(), tt.words) {
				t.Errorf("error %q does not say %q", g.err, tt.words)
			}
			if string(g.artifact.Data) != tt.data {
				t.Errorf("%d bytes, want %d: %.80q", len(g.artifact.Data), len(tt.data), g.artifact.Data)
			}
			if g.artifact.Exit != tt.exit {
				t.Errorf("exit code %d, want %d", g.artifact.Exit, tt.exit)
			}
		})
	}
}

// An image without ss or the legacy tools is a gap, and so are topics that
// the version is known not to have; those are not even asked for.
func TestAbsentCommands(t *testing.T) {
	server := livetest.New(t)
	a := server.AddAgent("n1", "1.16.3", map[string]livetest.Recording{statusCmd: {Stdout: "{}"}})
	all := collect(t, open(t, server, nil), on("n1", source.Status, source.Listeners, source.FrontendsTable)...)
	for topic, words := range map[source.Topic]string{source.Listeners: "the command is not there", source.FrontendsTable: "needs Cilium 1.18, the agent is 1.16.3"} {
		g := all[on("n1", topic)[0]]
		if !errors.Is(g.err, source.ErrAbsent) || !strings.Contains(fmt.Sprint(g.err), words) {
			t.Errorf("%s: %v", topic, g.err)
		}
	}
	if a.Execs() != 1 {
		t.Errorf("%d execs", a.Execs())
	}
}

// Agents of 1.14 and older have no cilium-dbg.
func TestOldBinary(t *testing.T) {
	server := livetest.New(t)
	server.AddAgent("n1", "1.14.19", map[string]livetest.Recording{"cilium status -o json": {Stdout: "{}"}})
	g := collect(t, open(t, server, nil), on("n1", source.Status)...)[on("n1", source.Status)[0]]
	if g.err != nil || !strings.HasPrefix(g.artifact.Origin, "cilium status -o json in pod ") {
		t.Errorf("origin %q, error %v", g.artifact.Origin, g.err)
	}
}

func TestSPDYFallback(t *testing.T) {
	server := livetest.New(t)
	server.NoWebSocket = true
	qs := []source.Query{}
	for _, n := range []string{"n1", "n2", "n3"} {
		server.AddAgent(n, "1.20.2", map[string]livetest.Recording{statusCmd: {Stdout: strings.Repeat("{}\n", 100000)}})
		qs = append(qs, on(n, source.Status)...)
	}
	s := open(t, server, func(o *Options) { o.Concurrency = 1 })
	for q, g := range collect(t, s, qs...) {
		if g.err != nil || len(g.artifact.Data) != 300000 {
			t.Errorf("%v: %d bytes, %v", q, len(g.artifact.Data), g.err)
		}
	}
	tried := map[string]int{}
	for _, r := range server.Requests() {
		if r.Upgrade != "" {
			tried[r.Upgrade]++
		}
	}
	if d := cmp.Diff(map[string]int{"websocket": 1, "SPDY/3.1": 3}, tried); d != "" {
		t.Errorf("upgrades (-want +got):\n%s", d)
	}
}

func TestDeadlineOfTheRun(t *testing.T) {
	server := livetest.New(t)
	for _, n := range []string{"n1", "n2", "n3"} {
		a := server.AddAgent(n, "1.20.2", nil)
		a.Fault = livetest.Hang
	}
	s := open(t, server, func(o *Options) { o.Concurrency = 1; o.NodeTimeout = time.Minute })
	if _, err := s.Nodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start, n := time.Now(), 0
	qs := slices.Concat(on("n1", source.Status), on("n2", source.Status), on("n3", source.Status), []source.Query{{Topic: source.ServicesAfter}})
	err := s.Collect(ctx, qs, func(a source.Artifact, err error) {
		n++
		if !errors.Is(err, source.ErrUnreachable) {
			t.Errorf("%v: %v", a.Query, err)
		}
	})
	if err != nil || n != len(qs) || time.Since(start) > 5*time.Second {
		t.Errorf("%d answers in %s, error %v", n, time.Since(start), err)
	}
}

// A command that hangs is ended on the node, the ones after it still run, and
// nothing is left there, also when the client has gone away in the middle.
func TestNothingIsLeftRunning(t *testing.T) {
	server := livetest.New(t)
	hung := server.AddAgent("n1", "1.20.2", map[string]livetest.Recording{
		"cilium-dbg status -o json": {Stdout: "{}", Sleep: "600"}, serviceCmd: {Stdout: "[]"}})
	hung.Unasked = true
	left := server.AddAgent("n2", "1.20.2", map[string]livetest.Recording{statusCmd: {Stdout: "{}", Sleep: "600"}, serviceCmd: {Stdout: "[]"}})
	left.Fault, left.BreakAfter, left.Unasked = livetest.Break, 60, true
	s := open(t, server, func(o *Options) { o.NodeTimeout = 4 * time.Second })
	all := collect(t, s, slices.Concat(on("n1", source.Status, source.ServiceList), on("n2", source.Status, source.ServiceList))...)
	for _, n := range []string{"n1", "n2"} {
		if err := all[on(n, source.Status)[0]].err; err == nil {
			t.Errorf("%s: no error for a command that hangs", n)
		}
	}
	deadline := time.Now().Add(10 * time.Second)
	for len(hung.Processes())+len(left.Processes()) > 0 {
		if time.Now().After(deadline) {
			t.Fatalf("left running: %q %q", hung.Processes(), left.Processes())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Every list that stands for the time after the agents is read after them.
func TestAfterIsAfter(t *testing.T) {
	server := livetest.New(t)
	a := server.AddAgent("n1", "1.20.2", map[string]livetest.Recording{statusCmd: {Stdout: "{}"}})
	var mu sync.Mutex
	reads := map[string][]int{}
	server.OnList = func(resource string) {
		mu.Lock()
		defer mu.Unlock()
		reads[resource] = append(reads[resource], a.Execs())
	}
	server.Add(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}})
	qs := append(on("n1", source.Status), source.Query{Topic: source.Services}, source.Query{Topic: source.ServicesAfter},
		source.Query{Topic: source.EndpointSlices}, source.Query{Topic: source.EndpointSlicesAfter})
	collect(t, open(t, server, nil), qs...)
	for _, resource := range []string{"services", "endpointslices"} {
		if d := cmp.Diff([]int{0, 1}, reads[resource]); d != "" {
			t.Errorf("%s read at these counts of execs (-want +got):\n%s", resource, d)
		}
	}
}

func TestWrongQueries(t *testing.T) {
	server := livetest.New(t)
	server.AddAgent("n1", "1.20.2", nil)
	qs := []source.Query{{Topic: "nonsense"}, {Topic: source.Status}, {Topic: source.Services, Node: "n1"}, {Topic: source.Status, Node: "n9"},
		{Topic: source.InitLog, Node: "n1", Arg: "../x"}, {Topic: source.InitLog, Node: "n1"}, {Topic: source.Endpoints}, {Topic: source.CiliumConfig}}
	for q, g := range collect(t, open(t, server, nil), qs...) {
		if !errors.Is(g.err, source.ErrAbsent) {
			t.Errorf("%v: %v", q, g.err)
		}
	}
}
