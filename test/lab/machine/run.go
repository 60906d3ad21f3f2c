package machine

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Run starts a program and returns what it printed on standard output. The
// error holds the command line and the end of its standard error.
func Run(ctx context.Context, argv ...string) (string, error) {
	return RunWith(ctx, exec.CommandContext(ctx, argv[0], argv[1:]...))
}

// RunWith is Run for a command that needs its own environment or input.
func RunWith(_ context.Context, cmd *exec.Cmd) (string, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(errs.String())
		if said == "" {
			said = strings.TrimSpace(out.String())
		}
		if len(said) > 2000 {
			said = "…" + said[len(said)-2000:]
		}
		return out.String(), fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, said)
	}
	return out.String(), nil
}
