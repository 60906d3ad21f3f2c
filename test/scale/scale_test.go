package main

import (
	"bufio"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/live"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	checks "github.com/kubectl-kpr/kubectl-kpr/pkg/diag/checks/service"
)

// look judges the agreement of the layers as `status` does.
func look(t *testing.T, c *cluster, sums bool) (found, gaps []string, run *diag.Run) {
	t.Helper()
	src, err := live.New(live.Options{Config: c.server.Config(), NodeTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	run, err = diag.Do(t.Context(), src, diag.Selection{Sums: sums}, checks.Sync())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range run.Results {
		for _, f := range r.Findings {
			if f.Rule.Name != "incomplete" {
				found = append(found, f.Rule.Name+" "+f.Node+" "+f.Subject+" "+f.Address)
			}
		}
		for _, g := range r.Gaps {
			gaps = append(gaps, g.Node)
		}
	}
	slices.Sort(found)
	slices.Sort(gaps)
	return found, slices.Compact(gaps), run
}

func raise(t *testing.T, w world, fs faults) *cluster {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the agents' script needs %s", tool)
		}
	}
	if err := w.check(fs); err != nil {
		t.Fatal(err)
	}
	c, err := start(t, w, fs, "recorded", 0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Sums find what lists find, with a fraction of the bytes.
func TestSumsFindWhatListsFind(t *testing.T) {
	w, fs := world{nodes: 40, services: 300, backends: 3, ingress: 3}, faults{lost: 2, stale: 3, cut: 1}
	var found, gaps [2][]string
	var sent [2]int64
	for i, sums := range []bool{false, true} {
		c := raise(t, w, fs)
		var run *diag.Run
		found[i], gaps[i], run = look(t, c, sums)
		sent[i] = c.fleet.bytes.Load()
		if len(c.fleet.unkept) > 0 {
			t.Fatalf("the simulation has no answer: %q", c.fleet.unkept)
		}
		if sums && run.Store.Twin(nodeName(20)) != nodeName(0) {
			t.Errorf("%s stands for %s", run.Store.Twin(nodeName(20)), nodeName(20))
		}
	}
	if !slices.Equal(found[0], found[1]) || len(found[0]) < 5 {
		t.Errorf("lists find\n%s\nsums find\n%s", strings.Join(found[0], "\n"), strings.Join(found[1], "\n"))
	}
	if len(gaps[0])+len(gaps[1]) > 0 {
		t.Errorf("gaps on %s and %s", gaps[0], gaps[1])
	}
	if sent[1] > sent[0]/4 { // five kinds of forty nodes send their lists
		t.Errorf("%d bytes with lists, %d with sums", sent[0], sent[1])
	}
}

func TestNodesThatMisbehaveAreGaps(t *testing.T) {
	c := raise(t, world{nodes: 30, services: 40, backends: 3, ingress: 2}, faults{hung: 2, forbidden: 3})
	found, gaps, _ := look(t, c, true)
	want := []string{"node-0025", "node-0026", "node-0027", "node-0028", "node-0029"}
	if len(found) > 0 || !slices.Equal(gaps, want) {
		t.Errorf("found %s, gaps on %s, want none and %s", found, gaps, want)
	}
}

func TestTemplate(t *testing.T) {
	text := newTemplate([]byte("\nAA hello\n1.2.3.4:80 1.2.3.4\nAA end"), "AA", "1.2.3.4")
	var b strings.Builder
	w := bufio.NewWriter(&b)
	text.write(w, "BB", "5.6.7.8")
	if err := w.Flush(); err != nil || b.String() != "\nBB hello\n5.6.7.8:80 5.6.7.8\nBB end" {
		t.Errorf("%q %v", b.String(), err)
	}
}

func TestLatency(t *testing.T) {
	argv := []string{"sh", "-c", "script", "kpr", "nonce", "20", "100",
		"0", "10", "100", "4", "%cilium", "status", "-o", "json", "1", "10", "100", "3", "bash", "-c", "cilium-dbg service list -o json | jq; cilium-dbg shell -- lb/maps-dump"}
	if got, want := commandsTime(argv, 1000), 3*startTime+otherTime+185*time.Millisecond; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestBadWorlds(t *testing.T) {
	for _, w := range []world{{}, {nodes: 1, ingress: 2, services: 1}, {nodes: 5000, ingress: 1}, {nodes: 3, ingress: 1, services: -1}} {
		if w.check(faults{}) == nil {
			t.Errorf("%+v is accepted", w)
		}
	}
}
