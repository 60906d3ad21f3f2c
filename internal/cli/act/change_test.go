package act

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cli"
	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
)

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func world(input string, terminal bool) (cli.Env, *bytes.Buffer) {
	errs := &bytes.Buffer{}
	return cli.Env{
		IOStreams: genericiooptions.IOStreams{In: bytes.NewBufferString(input), Out: &bytes.Buffer{}, ErrOut: errs},
		Getenv:    func(string) string { return "" },
		Terminal:  func(io.Writer) (int, bool) { return 80, terminal },
	}, errs
}

// TestConfirm: the answer that nobody gives is no, and so is every answer that
// is not the one that was asked for.
func TestConfirm(t *testing.T) {
	for name, test := range map[string]struct {
		flags    change
		input    string
		terminal bool
		context  bool // to be typed
		words    string
	}{
		"yes":                      {change{}, "y\n", true, false, ""},
		"Yes":                      {change{}, "YES\n", true, false, ""},
		"enter":                    {change{}, "\n", true, false, "declined"},
		"end of input":             {change{}, "", true, false, "declined"},
		"no":                       {change{}, "no\n", true, false, "declined"},
		"context":                  {change{}, "prod\n", true, true, ""},
		"yes is not the context":   {change{}, "y\n", true, true, "declined"},
		"another context":          {change{}, "prod2\n", true, true, "declined"},
		"no terminal":              {change{}, "y\n", false, false, "nobody can be asked"},
		"no terminal, --yes":       {change{yes: true}, "", false, true, ""},
		"approved":                 {change{approve: digest}, "", false, false, ""},
		"another one was approved": {change{approve: strings.Repeat("f", 64), yes: true}, "y\n", true, false, "not the one that was approved"},
		"approved in short":        {change{approve: digest[:12]}, "", false, false, "not the one that was approved"},
	} {
		t.Run(name, func(t *testing.T) {
			env, errs := world(test.input, test.terminal)
			err := test.flags.confirm(t.Context(), env, proposal{Context: "prod", Server: "https://x\x1b[31m", Nodes: 40, Digest: digest, Question: "Remove it?", TypeContext: test.context})
			if (err == nil) != (test.words == "") || err != nil && !strings.Contains(err.Error(), test.words) {
				t.Errorf("%v", err)
			}
			if err != nil && !strings.Contains(err.Error(), "nothing was changed") {
				t.Errorf("does not say that nothing was changed: %v", err)
			}
			if said := errs.String(); !strings.HasPrefix(said, "context prod, server https://x\ufffd[31m, 40 nodes, plan 0123456789ab\n") {
				t.Errorf("%q", said)
			}
		})
	}
}

// TestConfirmEndsWithItsContext: Ctrl-C at the question.
func TestConfirmEndsWithItsContext(t *testing.T) {
	env, _ := world("", true)
	never, _ := io.Pipe()
	env.In = struct {
		io.Reader
		io.Writer
	}{never, io.Discard}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&change{}).confirm(ctx, env, proposal{Digest: digest}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestAccepted(t *testing.T) {
	known := func(r string) bool { return r == "kube-chains" }
	c := change{accepts: []string{"kube-chains=cleaned = tomorrow"}}
	if got, err := c.accepted(known); err != nil || got["kube-chains"] != "cleaned = tomorrow" {
		t.Errorf("%v %v", got, err)
	}
	for _, bad := range []string{"kube-chains", "kube-chains=", "kube-chains= ", "kube-chain=x", "=x"} {
		if _, err := (&change{accepts: []string{bad}}).accepted(known); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

// TestExitCodes: refused is 2, not seen is 3, all else 1.
func TestExitCodes(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		code int
	}{
		"refused":        {&plan.Failure{Stage: "s", Phase: plan.PhaseGate, Err: plan.ErrRefused}, 2},
		"not verifiable": {fmt.Errorf("x: %w", plan.ErrUnverified), 3},
		"failed":         {errors.New("x"), 1},
		"declined":       {errDeclined, 1},
		"other steps":    {plan.ErrChanged, 1},
	} {
		env, errs := world("", false)
		var exit cli.ExitError
		if err := ended(t.Context(), env, test.err); !errors.As(err, &exit) || exit.Code != test.code || !strings.HasPrefix(errs.String(), "kubectl kpr: ") {
			t.Errorf("%s: %v, %q", name, err, errs.String())
		}
	}
	env, _ := world("", false)
	if err := ended(t.Context(), env, nil); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := ended(ctx, env, fmt.Errorf("%w: %w", plan.ErrRefused, ctx.Err())); errors.As(err, new(cli.ExitError)) {
		t.Errorf("an interrupted run: %v", err) // it is 130 above
	}
}
