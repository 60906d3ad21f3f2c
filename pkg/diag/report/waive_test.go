package report

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseWaiver(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Waiver
		err  string
	}{
		{"map-pressure", Waiver{Rule: "map-pressure"}, ""},
		{"map-pressure=node/w-*", Waiver{"map-pressure", "node/w-*"}, ""},
		{"a=b=c", Waiver{"a", "b=c"}, ""},
		{"", Waiver{}, "want RULE"},
		{"=node/w-1", Waiver{}, "want RULE"},
		{"map-pressure=", Waiver{}, "want RULE"},
		{"incomplete", Waiver{}, "stays unknown"},
	} {
		got, err := ParseWaiver(c.in)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %v, %v", c.in, got, err)
		}
		if err == nil && got.String() != c.in {
			t.Errorf("%q becomes %q", c.in, got)
		}
	}
}

func TestWaiverFits(t *testing.T) {
	for _, c := range []struct {
		waiver, subject string
		want            bool
	}{
		{"r", "service/shop/web", true},
		{"r=service/shop/*", "service/shop/web", true},
		{"r=service/*", "service/shop/web", true},
		{"r=service/shop/we?", "service/shop/web", true},
		{"r=service/shop", "service/shop/web", false},
		{"r=shop", "service/shop/web", false},
		{"r=service/sho./web", "service/shop/web", false},
		{"r=frontend/[fd00::1]:80", "frontend/[fd00::1]:80", true},
		{"other=*", "service/shop/web", false},
	} {
		w, err := ParseWaiver(c.waiver)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.matcher()(Finding{Rule: "r", Subject: c.subject}); got != c.want {
			t.Errorf("%s on %s: %v", c.waiver, c.subject, got)
		}
	}
}

func said(rule, severity, subject string) Finding {
	return Finding{Key: rule + "|" + subject, Rule: rule, Severity: severity, Subject: subject}
}

func document(fs ...Finding) *Document {
	return &Document{
		SchemaVersion: SchemaVersion, Findings: fs, Time: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC),
		Checks: []Check{{Name: "c", Rules: []string{"a", "b"}}},
	}
}

// baseline goes the way of a file.
func baseline(t *testing.T, d *Document) *Baseline {
	t.Helper()
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	b, err := ReadBaseline("old.json", strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func subjects(fs []Finding) (out []string) {
	for _, f := range fs {
		out = append(out, f.Severity+" "+f.Subject)
	}
	return out
}

func TestBaseline(t *testing.T) {
	old := document(said("a", "error", "x"), said("a", "warning", "worse"), said("b", "error", "gone"), said("z", "error", "not run"), said("incomplete", "warning", "cluster"))
	d := document(said("a", "error", "x"), said("a", "error", "worse"), said("a", "error", "new"), said("incomplete", "warning", "cluster"))
	waive(d, Options{Baseline: baseline(t, old)})
	if diff := cmp.Diff([]string{"error worse", "error new", "warning cluster"}, subjects(d.Findings)); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Waived{{said("a", "error", "x"), ByBaseline, "baseline old.json"}}, d.Waived); diff != "" {
		t.Errorf("known (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"baseline old.json of 2026-11-30T00:00:00Z: 1 finding known, 1 no longer found"}, d.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}

	// The report of that run knows what it knew; what was ignored is new again.
	next := document(said("a", "error", "x"), said("a", "error", "new"), said("b", "error", "ignored"))
	d.Waived = append(d.Waived, Waived{said("b", "error", "ignored"), ByIgnore, "--ignore b"})
	waive(next, Options{Baseline: baseline(t, d)})
	if diff := cmp.Diff([]string{"error ignored"}, subjects(next.Findings)); diff != "" {
		t.Errorf("counted against the next baseline (-want +got):\n%s", diff)
	}
}

func TestIgnore(t *testing.T) {
	d := document(said("a", "error", "x"), said("b", "warning", "x"), said("b", "warning", "y"))
	waive(d, Options{Waivers: []Waiver{{Rule: "b", Subject: "x"}, {Rule: "a"}, {Rule: "c"}}})
	if diff := cmp.Diff([]string{"warning y"}, subjects(d.Findings)); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
	want := []string{
		"--ignore b=x: 1 finding left out of the count", "--ignore a: 1 finding left out of the count",
		"--ignore c: there is nothing that it fits",
	}
	if diff := cmp.Diff(want, d.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if got := waivedWords(d); got != "2 waived" {
		t.Errorf("verdict says %q", got)
	}
}

func TestReadBaselineRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "not a report",
		"<html>":                 "not a report",
		"{}":                     `schema ""`,
		`{"schemaVersion":"v9"}`: `schema "v9"`,
	} {
		if _, err := ReadBaseline("f", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
