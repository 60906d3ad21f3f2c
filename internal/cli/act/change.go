package act

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cli"
	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
	"github.com/kubectl-kpr/kubectl-kpr/internal/render"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// errDeclined ends a command that was not confirmed: nothing was done.
var errDeclined = errors.New("declined; nothing was changed")

// change is what every command that runs a plan has in common.
type change struct {
	yes, dryRun   bool
	approve, note string
	journal       string
	accepts       []string
}

func (c *change) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVarP(&c.yes, "yes", "y", false, "do not ask")
	fs.BoolVar(&c.dryRun, "dry-run", false, "print what would be changed, and change none of it")
	fs.StringVar(&c.approve, "approve", "", "do not ask, if the plan is the one with this digest (of --dry-run -o json)")
	fs.StringVar(&c.note, "note", "", "a text for the journal, such as the number of the change")
	fs.StringVar(&c.journal, "journal", "", "keep a copy of the journal in this file")
}

// addAccept adds --accept, for plans that have gates which can be passed.
func (c *change) addAccept(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&c.accepts, "accept", nil, "let this rule's stops pass, as RULE=REASON; repeats; the reason is journaled")
}

// accepted reads --accept; known tells whether a rule of that name exists.
func (c *change) accepted(known func(rule string) bool) (map[string]string, error) {
	out := map[string]string{}
	for _, a := range c.accepts {
		rule, reason, _ := strings.Cut(a, "=")
		switch {
		case strings.TrimSpace(reason) == "":
			return nil, fmt.Errorf("--accept %q: want RULE=REASON", a)
		case !known(rule):
			return nil, fmt.Errorf("--accept %q: no rule of that name (kubectl kpr explain lists them)", rule)
		}
		out[rule] = reason
	}
	return out, nil
}

// proposal is what is to be confirmed. What it changes was printed before.
type proposal struct {
	Context, Server string
	Nodes           int // of the cluster
	Digest          string
	Question        string // "Remove it?"
	// TypeContext demands the context's name in place of a yes.
	TypeContext bool
}

// confirm returns nil if the plan may be carried out, and asks for that unless
// flags have said so. Without a terminal nobody can be asked.
func (c *change) confirm(ctx context.Context, env cli.Env, p proposal) error {
	w := env.ErrOut
	_, _ = fmt.Fprintf(w, "context %s, server %s, %d nodes, plan %.12s\n", render.Clean(p.Context), render.Clean(p.Server), p.Nodes, p.Digest)
	switch {
	case c.approve != "" && c.approve != p.Digest:
		return fmt.Errorf("--approve %.12s: the plan is now %.12s, so it is not the one that was approved; look at it with --dry-run; nothing was changed", c.approve, p.Digest)
	case c.approve != "", c.yes:
		return nil
	}
	in, file := env.In.(io.Writer)
	if terminal := file && isTerminal(env, in); !terminal {
		return errors.New("nobody can be asked, standard input is no terminal: look at it with --dry-run, then give --approve DIGEST or --yes; nothing was changed")
	}
	wanted := "y"
	if p.TypeContext {
		wanted = p.Context
		_, _ = fmt.Fprintf(w, "%s Type the name of the context to go on: ", p.Question)
	} else {
		_, _ = fmt.Fprintf(w, "%s [y/N] ", p.Question)
	}
	answer, err := ask(ctx, env.In)
	if err != nil {
		return err
	}
	if answer == wanted || !p.TypeContext && strings.EqualFold(answer, "yes") {
		return nil
	}
	return errDeclined
}

func isTerminal(env cli.Env, w io.Writer) bool {
	_, yes := env.Terminal(w)
	return yes
}

// ask reads a line; the end of the context is an answer too.
func ask(ctx context.Context, in io.Reader) (string, error) {
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(in).ReadString('\n')
		line <- strings.TrimSpace(text)
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case text := <-line:
		return text, nil
	}
}

// ended turns what ended a plan into an exit code: 2 where a gate or
// checkpoint refused, 3 where something could not be verified; all else is 1, or
// 130 where it was interrupted. The error is told first.
func ended(ctx context.Context, env cli.Env, err error) error {
	code := report.ExitFailed
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return err
	case errors.Is(err, plan.ErrRefused):
		code = report.ExitFound
	case errors.Is(err, plan.ErrUnverified):
		code = report.ExitUnknown
	}
	_, _ = fmt.Fprintln(env.ErrOut, "kubectl kpr: "+clean(err.Error()))
	return cli.ExitError{Code: code}
}

// clean takes the terminal's escapes out of a text of several lines.
func clean(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := range lines {
		lines[i] = render.Clean(lines[i])
	}
	return strings.Join(lines, "\n")
}
