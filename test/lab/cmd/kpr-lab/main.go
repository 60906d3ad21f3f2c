// Command kpr-lab raises Kubernetes and Cilium on one machine, breaks them on
// purpose, and takes everything away again.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/cluster"
	"github.com/kubectl-kpr/kubectl-kpr/test/lab/node"
	"github.com/kubectl-kpr/kubectl-kpr/test/lab/place"
	"github.com/kubectl-kpr/kubectl-kpr/test/lab/recipe"
)

// command is one word of the program. Hidden ones make it one of the lab's own
// processes.
type command struct {
	name, args, doc string
	run             func(ctx context.Context, d place.Dirs, args []string) error
}

func commands() []command {
	return []command{
		{"doctor", "", "say what this machine lacks; exit code 1 if anything", doctor},
		{"build", "", "build binaries and images into the cache", build},
		{"up", "[STATE]", "raise the lab, building what is missing, and enter a state (default kpr)", up},
		{"state", "[NAME]", "leave the present state and enter another; without a name: say which it is", state},
		{"states", "[-o json]", "list the states", list},
		{"status", "", "say what runs", status},
		{"kubeconfig", "", "print the path of the kubeconfig, which works from this machine", kubeconfig},
		{"audit", "", "print the path of the API server's audit log", audit},
		{"kubectl", "ARG...", "run the lab's kubectl as administrator", kubectl},
		{"in", "NODE -- COMMAND...", "run a command as a process of a node", in},
		{"down", "", "end and remove all of the lab, after a crash too; the cache stays", down},
		{node.Outer, "", "", func(_ context.Context, d place.Dirs, args []string) error { return node.RunOuter(d, args[0], args[1]) }},
		{node.Inner, "", "", func(_ context.Context, d place.Dirs, args []string) error { return node.RunInner(d, args[0], args[1]) }},
		{recipe.Importer, "", "", func(ctx context.Context, _ place.Dirs, args []string) error {
			return recipe.Import(ctx, args[0], args[1])
		}},
		{cluster.Owner, "", "", func(ctx context.Context, _ place.Dirs, args []string) error {
			return cluster.RunOwner(ctx, args[0], args[1], args[2])
		}},
		{cluster.Forwarder, "", "", func(context.Context, place.Dirs, []string) error { return cluster.Forward() }},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && len(os.Args) > 1 && os.Args[1] == "kubectl":
		os.Exit(exit.ExitCode())
	default:
		fmt.Fprintln(os.Stderr, "kpr-lab:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	all := commands()
	if len(args) == 0 || args[0] == "help" || strings.HasPrefix(args[0], "-") {
		usage(os.Stdout, all)
		return nil
	}
	i := slices.IndexFunc(all, func(c command) bool { return c.name == args[0] })
	if i < 0 {
		usage(os.Stderr, all)
		return fmt.Errorf("%q: no such command", args[0])
	}
	d, err := place.Find()
	if err != nil {
		return err
	}
	return all[i].run(ctx, d, args[1:])
}

func usage(w io.Writer, all []command) {
	_, _ = fmt.Fprintln(w, "kpr-lab: a Kubernetes cluster with Cilium on this machine, to be broken on purpose")
	for _, c := range all {
		if c.doc != "" {
			_, _ = fmt.Fprintf(w, "  %-24s %s\n", c.name+" "+c.args, c.doc)
		}
	}
}
