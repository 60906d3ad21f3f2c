package words

import "testing"

func TestCount(t *testing.T) {
	for _, test := range []struct {
		n    int
		noun string
		want string
	}{
		{0, "node", "0 nodes"}, {1, "node", "1 node"}, {2, "node", "2 nodes"},
		{1, "address", "1 address"}, {3, "address", "3 addresses"}, {2, "more problem", "2 more problems"},
	} {
		if got := Count(test.n, test.noun); got != test.want {
			t.Errorf("Count(%d, %q) = %q, want %q", test.n, test.noun, got, test.want)
		}
	}
}

func TestEdits(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"web", "web", 0}, {"", "web", 3}, {"web", "", 3},
		{"web", "wen", 1}, {"web", "we", 1}, {"eb", "web", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 2},
	} {
		if got := Edits(test.a, test.b); got != test.want {
			t.Errorf("Edits(%q, %q) = %d, want %d", test.a, test.b, got, test.want)
		}
		if got := Edits(test.b, test.a); got != test.want {
			t.Errorf("Edits(%q, %q) = %d, want %d", test.b, test.a, got, test.want)
		}
	}
}
