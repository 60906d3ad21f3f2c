package render

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTemplates: kubectl's templates over the JSON of the report, without
// anything that could steer a terminal.
func TestTemplates(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t")
	if err := os.WriteFile(file, []byte("NODE  MODE\n.name .kpr.mode\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := document()
	d.Nodes = d.Nodes[2:4]
	d.Nodes[1].KPR = nil
	for format, want := range map[string]string{
		"jsonpath={.verdict.text}":                            "KPR is active on 37 of 40 nodes\n",
		"jsonpath={range .findings[*]}{.subject}{'\\n'}{end}": "node/n00\nnode/n01\nnode/n02\n\n",
		"jsonpath={.findings[0].message}":                     "no replacement is active �[31m節点�\n",
		"jsonpath={.nowhere}":                                 "\n",
		"custom-columns=NODE:.name,MODE:.kpr.mode":            "NODE   MODE\nn02    False\nn03    <none>\n",
		"custom-columns-file=" + file:                         "NODE   MODE\nn02    False\nn03    <none>\n",
	} {
		if diff := cmp.Diff(want, draw(t, d, Options{Format: format})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
	d.Nodes = nil
	if diff := cmp.Diff("RULE       NODE\nkpr-mode   n00\nkpr-mode   n01\nkpr-mode   n02\n", draw(t, d, Options{Format: "custom-columns=RULE:.rule,NODE:.node"})); diff != "" {
		t.Errorf("a row for each finding (-want +got):\n%s", diff)
	}
}

// TestValid: what is wrong with a format is said before a cluster is asked.
func TestValid(t *testing.T) {
	for format, want := range map[string]string{
		"text": "", "jsonpath={.a}": "", "custom-columns=A:.b": "", "html": "",
		"jsonpath":                  "such as jsonpath={.verdict.text}",
		"custom-columns=":           "such as custom-columns=NODE:.name",
		"jsonpath={.a":              "unclosed action",
		"custom-columns=A":          "expected <header>:<json-path-expr>",
		"custom-columns-file=/none": "/none",
		"text=x":                    "want one of text",
		"xml":                       "want one of text",
		"dot":                       "want one of text",
	} {
		err := Valid(format, Formats())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", format, err, want)
		}
	}
}
