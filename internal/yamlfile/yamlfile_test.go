package yamlfile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	docs, err := Parse("v.yaml", []byte("a: 1\nb:\n  c: [x, y]\n  d: |\n    {{ kept }}\n---\n# nothing\n---\nbase: &base\n  k: old\n  m: 1\nown:\n  <<: *base\n  k: new\na: 1\na: 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(docs) != 2 {
		t.Fatalf("%d documents", len(docs))
	}
	first, second := docs[0], docs[1]
	if v := first.Get("b", "c"); v.Place() != "v.yaml:3" || !cmp.Equal(v.Strings(), []string{"x", "y"}) {
		t.Errorf("b.c: %+v", v)
	}
	if v := first.Get("b", "d"); !v.Block || v.String() != "{{ kept }}\n" {
		t.Errorf("b.d: %+v", v)
	}
	if first.Get("a", "b") != nil || first.Get("nope").String() != "" || first.Get("nope").Strings() != nil {
		t.Error("a value where there is none")
	}
	if got := second.Get("own", "k").String() + second.Get("own", "m").String(); got != "new1" {
		t.Errorf("merged: %q", got)
	}
	if got := second.Get("a").String(); got != "2" {
		t.Errorf("the later of two keys: %q", got)
	}
}

func TestParseErrors(t *testing.T) {
	bomb := "a0: &a0 [x]\n"
	for i := range 10 {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 8), ", "))
	}
	for _, tt := range []struct {
		name, data, want string
		line             int
	}{
		{"tab", "a: 1\n\tb: 2\n", "not YAML", 2},
		{"bare template", "a: 1\nhost: {{ vip }}\n", "filled in later", 2},
		{"quoted template", "a: 1\nhost: \"{{ vip }}\"\n", "{{ vip }}", 2},
		{"control line", "a: 1\n{% if x %}\nb: 1\n{% endif %}\n", "{% if x %}", 2},
		{"control line behind a comment", "# {% no %}\na: 1\n{% if x %}\nb: 1\n", "{% if x %}", 3},
		{"placeholder", "a: 1\nb:\n  - ${VIP:-10.0.0.1}\n", "${VIP:-10.0.0.1}", 3},
		{"other marks", "a: \"#{ pods }#\"\n#% if x %#\nb: 1\n", "#{ pods }#", 1},
		{"list as a key", "[a]: 1\n", "no word", 1},
		{"bomb", bomb, "too many", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("f", []byte(tt.data))
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(e.Reason, tt.want) || tt.line != 0 && e.Line != tt.line {
				t.Errorf("got %v, want line %d: %s", err, tt.line, tt.want)
			}
		})
	}
	if _, err := Parse("f", []byte("cost: $5 {x} 100%\n")); err != nil {
		t.Errorf("no placeholder: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("a: &x [1, {b: 2}]\nc: *x\n<<: {d: 1}\n"))
	f.Add([]byte("a: {{ b }}\n--- |\n x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, err := Parse("f", data)
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("an error without its file: %v", err)
		}
		for _, d := range docs {
			if d.Get("a").String() != "" && d.Get("a").Line < 1 {
				t.Error("a value without a line")
			}
		}
	})
}
