// Package cli holds the reading commands of the plugin, one file each. A
// command turns flags into options, calls a library and hands the report to
// the renderer.
package cli

import (
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/kubectl-kpr/kubectl-kpr/internal/live"
)

// Env is the world that commands see: streams, clock and environment. Tests
// put their own in its place.
type Env struct {
	genericiooptions.IOStreams
	Now    func() time.Time
	Getenv func(string) string
	// Terminal tells whether w is a terminal, and how wide.
	Terminal func(w io.Writer) (columns int, yes bool)
	// Host makes what --host needs, nil where that is not available: it writes
	// to the cluster, and commands here only read.
	Host func(*rest.Config) (live.HostRunner, error)
	// Acts, if not nil, adds the commands that write. They live in a room that
	// this one does not know.
	Acts func(root *cobra.Command, share Share)
}

// System is the real world.
func System() Env {
	return Env{
		IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Now:       time.Now,
		Getenv:    os.Getenv,
		Terminal:  terminal,
	}
}

func terminal(w io.Writer) (int, bool) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		columns = 80
	}
	return columns, true
}
