package render

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/cmd/get"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// templates are the formats with a template of the user's: kubectl's own, over
// the JSON of the Document.
var templates = []string{"jsonpath", "jsonpath-as-json", "jsonpath-file", "custom-columns", "custom-columns-file"}

// Base is the name of a format without its template.
func Base(format string) string {
	base, _, _ := strings.Cut(format, "=")
	return base
}

// Valid tells what is wrong with a format before anything is asked of a
// cluster: a name that is none of those known, a template that is missing or
// cannot be read.
func Valid(format string, known []string) error {
	base, template, given := strings.Cut(format, "=")
	if !slices.Contains(known, base) || given && !slices.Contains(templates, base) {
		return fmt.Errorf("output format %q: want one of %s", format, strings.Join(known, ", "))
	}
	if !slices.Contains(templates, base) {
		return nil
	}
	if template == "" {
		example := "{.verdict.text}"
		if strings.HasPrefix(base, "custom-columns") {
			example = "NODE:.name,MODE:.kpr.mode"
		}
		if strings.HasSuffix(base, "-file") {
			example = "FILE"
		}
		return fmt.Errorf("output format %q: want a template behind it, such as %s=%s", base, base, example)
	}
	_, err := printer(format)
	return err
}

func printer(format string) (printers.ResourcePrinter, error) {
	if strings.HasPrefix(format, "custom-columns") {
		p, err := get.NewCustomColumnsPrintFlags().ToPrinter(format)
		if err != nil {
			return nil, fmt.Errorf("output format %s: %w", Base(format), err)
		}
		return p, nil
	}
	missing := true // keys that are left out where nothing is known
	p, err := (&genericclioptions.JSONPathPrintFlags{AllowMissingKeys: &missing}).ToPrinter(format)
	if err != nil {
		return nil, fmt.Errorf("output format %s: %w", Base(format), err)
	}
	return p, nil
}

// byTemplate writes what the user's template makes of d. Columns have a row for
// each node in reports that show nodes, and else for each finding.
func byTemplate(w io.Writer, d *report.Document, format string) error {
	p, err := printer(format)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(d)
	if err != nil {
		return err
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return err
	}
	cleanAll(object)
	if !strings.HasPrefix(format, "custom-columns") {
		if err := p.PrintObj(&unstructured.Unstructured{Object: object}, w); err != nil {
			return fmt.Errorf("output format %s: %w", Base(format), err)
		}
		_, err := io.WriteString(w, "\n")
		return err
	}
	rows, _ := object["nodes"].([]any)
	if len(rows) == 0 {
		rows, _ = object["findings"].([]any)
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"kind": "List", "apiVersion": "v1"}}
	for _, row := range rows {
		if fields, ok := row.(map[string]any); ok {
			list.Items = append(list.Items, unstructured.Unstructured{Object: fields})
		}
	}
	if err := p.PrintObj(list, w); err != nil {
		return fmt.Errorf("output format %s: %w", Base(format), err)
	}
	return nil
}

// cleanAll makes every text in v safe for a terminal, in place. JSON escapes by
// itself, a template does not.
func cleanAll(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if s, ok := x.(string); ok {
				v[k] = Clean(s)
				continue
			}
			cleanAll(x)
		}
	case []any:
		for i, x := range v {
			if s, ok := x.(string); ok {
				v[i] = Clean(s)
				continue
			}
			cleanAll(x)
		}
	}
}
