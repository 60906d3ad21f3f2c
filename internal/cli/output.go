package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-kpr/kubectl-kpr/internal/render"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// outputFlags are the flags of every command that ends in a report.
type outputFlags struct {
	formats []string // that the command has, the default first; nil for render.Formats
	format  string
	quiet   bool
	color   string
	failOn  string
}

func (f *outputFlags) add(cmd *cobra.Command) {
	if f.formats == nil {
		f.formats = render.Formats()
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.format, "output", "o", "text", "output format: "+strings.Join(f.formats, ", "))
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "print the verdict line only")
	fs.StringVar(&f.color, "color", "auto", "colour: auto, always or never; NO_COLOR and a pipe mean never")
	fs.StringVar(&f.failOn, "fail-on", "error", "least severity that makes the exit code 2: info, warning or error")
	complete(cmd, "output", f.formats)
	complete(cmd, "color", []string{"auto", "always", "never"})
	complete(cmd, "fail-on", []string{"info", "warning", "error"})
}

// validate fails on values that no run should begin with.
func (f *outputFlags) validate() (diag.Severity, error) {
	if err := render.Valid(f.format, f.formats); err != nil {
		return 0, fmt.Errorf("--output: %w", err)
	}
	if !slices.Contains([]string{"auto", "always", "never"}, f.color) {
		return 0, fmt.Errorf("--color %q: want auto, always or never", f.color)
	}
	s, err := diag.ParseSeverity(f.failOn)
	if err != nil {
		return 0, fmt.Errorf("--fail-on: %w", err)
	}
	return s, nil
}

// write renders the document and turns its verdict into the exit code.
func (f *outputFlags) write(env Env, d *report.Document) error {
	if err := render.Document(env.Out, d, f.options(env)); err != nil {
		return err
	}
	if d.Verdict.ExitCode != report.ExitOK {
		return ExitError{d.Verdict.ExitCode}
	}
	return nil
}

func (f *outputFlags) options(env Env) render.Options {
	columns, tty := env.Terminal(env.Out)
	dumb := env.Getenv("TERM") == "dumb"
	return render.Options{
		Format: f.format,
		Quiet:  f.quiet,
		Color:  f.color == "always" || (f.color == "auto" && tty && !dumb && env.Getenv("NO_COLOR") == ""),
		ASCII:  dumb || !utf8Locale(env.Getenv),
		Width:  columns,
	}
}

// utf8Locale follows the order in which the C library reads these variables.
func utf8Locale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(getenv(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}
