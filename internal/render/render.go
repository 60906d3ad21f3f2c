// Package render draws a report.Document: as text and as a page for people, and
// as JSON, YAML, names, Markdown, JUnit and kubectl's templates for programs.
// Each format is a function of the Document alone.
package render

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// Options say how to draw.
type Options struct {
	Format string // one of Formats
	Quiet  bool   // the verdict line only, in text
	Color  bool
	ASCII  bool // signs in ASCII
	Width  int  // of the terminal in columns, 0 for none: nothing is folded then
}

// Formats lists the names that Options.Format takes, the default first.
func Formats() []string {
	return append([]string{"text", "wide", "json", "yaml", "name", "markdown", "junit", "html"}, templates...)
}

// Document writes d to w.
func Document(w io.Writer, d *report.Document, o Options) error {
	if slices.Contains(templates, Base(o.Format)) {
		return byTemplate(w, d, o.Format)
	}
	if d.Trace != nil && o.Format != "json" && o.Format != "yaml" {
		return traced(w, d, o)
	}
	if d.Diff != nil && o.Format != "json" && o.Format != "yaml" {
		return compared(w, d, o)
	}
	switch o.Format {
	case "html":
		return htmlPage(w, d)
	case "", "text", "wide":
		return text(w, d, o)
	case "json":
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(d)
	case "yaml":
		raw, err := yaml.Marshal(d)
		if err != nil {
			return err
		}
		_, err = w.Write(raw)
		return err
	case "name":
		return names(w, d)
	case "markdown":
		return markdown(w, d)
	case "junit":
		return junit(w, d)
	}
	return Unsupported(o.Format)
}

// Unsupported is the error for an unknown format.
func Unsupported(format string) error {
	return fmt.Errorf("output format %q: want one of %s", format, strings.Join(Formats(), ", "))
}

// names writes the subject of each finding once, as kubectl's -o name would.
func names(w io.Writer, d *report.Document) error {
	var seen []string
	for _, f := range d.Findings {
		if s := Clean(f.Subject); !slices.Contains(seen, s) {
			seen = append(seen, s)
		}
	}
	for _, s := range seen {
		if _, err := fmt.Fprintln(w, s); err != nil {
			return err
		}
	}
	return nil
}
