package corpus

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cli"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/checks"
)

// This file is the only one here that knows the tool.

// run gives the findings of every check on the snapshot in dir, as the command
// line prints them. An exit code alone is no error: findings have one too.
func run(ctx context.Context, dir string) ([]Finding, error) {
	var out, errOut bytes.Buffer
	env := cli.Env{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut},
		Now:       func() time.Time { return time.Date(2026, 12, 1, 2, 0, 0, 0, time.UTC) },
		Getenv:    func(string) string { return "" },
		Terminal:  func(io.Writer) (int, bool) { return 0, false },
	}
	code := cli.Execute(ctx, env, []string{"check", "--snapshot", dir, "-o", "json"})
	var doc struct{ Findings []Finding }
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		return nil, fmt.Errorf("exit %d, no JSON: %s", code, strings.TrimSpace(errOut.String()))
	}
	return doc.Findings, nil
}

// registered lists the names of the rules that the tool has.
func registered() []string {
	var names []string
	for _, r := range checks.Rules() {
		names = append(names, r.Name)
	}
	return names
}
