package trace

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// maxNamed bounds what one sentence lists.
const maxNamed = 5

// listed joins words: "a, b and c", or "a, b +3 more".
func listed(words []string) string {
	switch n := len(words); {
	case n == 0:
		return ""
	case n == 1:
		return words[0]
	case n > maxNamed:
		return fmt.Sprintf("%s +%d more", strings.Join(words[:maxNamed], ", "), n-maxNamed)
	default:
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
}

// onNodes names nodes: "n1 and n2", "all 3 nodes", "37 of 40 nodes".
func onNodes(names []string, all int) string {
	switch n := len(names); {
	case n == all && n > 2:
		return fmt.Sprintf("all %d nodes", n)
	case n > maxNamed:
		return fmt.Sprintf("%d of %d nodes (%s)", n, all, listed(names))
	}
	return listed(names)
}

// share is a part of new connections in words.
func share(part, whole int) string {
	if whole <= 0 || part >= whole {
		return "all new connections"
	}
	for _, f := range []struct {
		a, b int
		word string
	}{{1, 2, "half"}, {1, 3, "a third"}, {2, 3, "two thirds"}, {1, 4, "a quarter"}, {3, 4, "three quarters"}, {1, 5, "a fifth"}} {
		if part*f.b == whole*f.a {
			return "about " + f.word + " of new connections"
		}
	}
	return fmt.Sprintf("about %d%% of new connections", max((100*part+whole/2)/whole, 1))
}

// meant is a hint at near names, or at all if there are few; "" without any.
func meant(name string, among []string) string {
	slices.Sort(among)
	among = slices.Compact(among)
	near := nearest(name, among)
	switch {
	case len(near) > 0:
		return "; did you mean " + strings.Join(near, " or ") + "?"
	case len(among) == 0:
		return ""
	case len(among) <= 8:
		return " (there are " + strings.Join(among, ", ") + ")"
	}
	return ""
}

// nearest are up to three names that are few edits away or begin alike.
func nearest(name string, among []string) []string {
	type hit struct {
		name string
		far  int
	}
	var hits []hit
	for _, other := range among {
		if len(other) > 253 {
			continue
		}
		far := words.Edits(name, other)
		switch {
		case far <= 2 && far < len(name):
		case len(name) >= 3 && (strings.HasPrefix(other, name) || strings.HasPrefix(name, other) && len(other) >= 3 || strings.Contains(other, name)):
			far = 3
		default:
			continue
		}
		hits = append(hits, hit{other, far})
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return a.far - b.far })
	var names []string
	for i := 0; i < len(hits) && i < 3; i++ {
		names = append(names, hits[i].name)
	}
	return names
}

func switched(s agent.Switch) lb.Answer {
	switch s {
	case agent.On:
		return lb.Yes
	case agent.Off:
		return lb.No
	}
	return lb.Unknown
}

func uniq(words []string) []string {
	var out []string
	for _, s := range words {
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
