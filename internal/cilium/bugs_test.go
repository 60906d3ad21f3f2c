package cilium

import "testing"

func TestBugsOf(t *testing.T) {
	has := func(version, issue string) bool {
		bugs, _ := BugsOf(version)
		for _, b := range bugs {
			if b.Issue == "cilium/cilium#"+issue {
				return true
			}
		}
		return false
	}
	for _, c := range []struct {
		version, issue string
		want           bool
	}{
		{"1.18.0", "41022", true},
		{"v1.18.0", "41022", true},
		{"1.18.1", "41022", false},
		{"1.17.9", "41022", false},
		{"1.19.2", "45198", true},
		{"1.19.3", "45198", false},
		{"1.19.9", "45252", true},
		{"1.20.0", "45252", false},
		{"1.20.1", "44730", true},
		{"1.20.2", "44730", false},
	} {
		if got := has(c.version, c.issue); got != c.want {
			t.Errorf("%s has #%s: %v, want %v", c.version, c.issue, got, c.want)
		}
	}
	if _, ok := BugsOf("latest"); ok {
		t.Error("the version latest was read")
	}
}

// TestBugsTable holds what every row must say.
func TestBugsTable(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range Bugs() {
		since, ok := parseRelease(b.Since)
		end, ended := parseRelease(b.Fixed + b.Before)
		if !ok || !ended || !since.before(end) || b.What == "" || (b.Fixed != "") == (b.Before != "") {
			t.Errorf("%s: want Since before one of Fixed and Before, and words: %+v", b.Issue, b)
		}
		if seen[b.Issue] {
			t.Errorf("%s stands twice", b.Issue)
		}
		seen[b.Issue] = true
	}
}
