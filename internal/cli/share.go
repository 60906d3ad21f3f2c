package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-kpr/kubectl-kpr/internal/live"
	"github.com/kubectl-kpr/kubectl-kpr/internal/render"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// Share is what commands of other rooms need of this one: the writing commands,
// which may look where reading ones do, and never the other way round.
type Share struct{ app *app }

// Env is the world of this run.
func (s Share) Env() Env { return s.app.env }

// Signs gives a text the signs that the terminal can show.
func (s Share) Signs(text string) string {
	if options := (&outputFlags{}).options(s.app.env); options.ASCII {
		return render.Plain(text)
	}
	return text
}

// Namespace is the one of kubectl's -n, else of the context.
func (s Share) Namespace() (string, error) {
	namespace, _, err := s.app.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("namespace: %w", err)
	}
	return namespace, nil
}

// Config is the client configuration of kubectl's flags.
func (s Share) Config() (*rest.Config, error) {
	config, err := s.app.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return config, nil
}

// CompleteTarget offers Services, and CompleteClient who may connect.
func (s Share) CompleteTarget(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	return s.app.completeTargets(cmd, args, toComplete)
}

// CompleteClient offers pod/NAME and node/NAME.
func (s Share) CompleteClient(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	return s.app.completeClients(cmd, args, toComplete)
}

// UsageError is an error that points to the command's help.
func UsageError(cmd *cobra.Command, err error) error { return usageError(cmd, err) }

// NoArgs refuses arguments with a word on what was meant.
func NoArgs(cmd *cobra.Command, args []string) error { return noArgs(cmd, args) }

// ClusterFlags say how to treat a running cluster.
type ClusterFlags struct{ flags clusterFlags }

// Add adds the flags to a command.
func (f *ClusterFlags) Add(cmd *cobra.Command) { f.flags.add(cmd) }

// Open is the Source of the cluster that kubectl's flags name. Its progress is
// shown until Clear.
func (f *ClusterFlags) Open(s Share) (*live.Source, error) {
	if err := f.flags.validate(); err != nil {
		return nil, err
	}
	return f.flags.cluster(s.app)
}

// Within sets the namespace that is enough, see live.Options.
func (f *ClusterFlags) Within(namespace string) { f.flags.within = namespace }

// Deadline is how long the whole run may take.
func (f *ClusterFlags) Deadline() time.Duration { return f.flags.deadline }

// Concurrency is how many nodes are asked at a time.
func (f *ClusterFlags) Concurrency() int { return f.flags.concurrency }

// Clear takes the line of progress off the terminal.
func (f *ClusterFlags) Clear() { f.flags.progress.clear() }

// NodeFlags choose nodes.
type NodeFlags struct{ flags nodeFlags }

// Add adds the flags to a command.
func (f *NodeFlags) Add(s Share, cmd *cobra.Command) { f.flags.add(s.app, cmd) }

// Selection is what was chosen; nothing means all.
func (f *NodeFlags) Selection() (diag.Selection, error) { return f.flags.selection() }

// OutputFlags are those of every command that ends in a report.
type OutputFlags struct{ flags outputFlags }

// Add adds the flags to a command; formats are those it has, the default first,
// none for all.
func (f *OutputFlags) Add(cmd *cobra.Command, formats ...string) {
	f.flags.formats = formats
	f.flags.add(cmd)
}

// Validate fails on values that no run should begin with, and says from which
// severity on a finding counts.
func (f *OutputFlags) Validate() (diag.Severity, error) { return f.flags.validate() }

// Format is the chosen one.
func (f *OutputFlags) Format() string { return f.flags.format }

// Write renders the document and turns its verdict into the exit code.
func (f *OutputFlags) Write(s Share, d *report.Document) error { return f.flags.write(s.app.env, d) }

// Kubeconfig writes the chosen context alone to a file that only this user can
// read, for programs that are started; remove takes it away again.
func (s Share) Kubeconfig() (name string, remove func(), err error) {
	raw, err := s.app.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return "", nil, fmt.Errorf("kubeconfig: %w", err)
	}
	if c := s.app.flags.Context; c != nil && *c != "" {
		raw.CurrentContext = *c
	}
	if err := api.MinifyConfig(&raw); err != nil {
		return "", nil, fmt.Errorf("kubeconfig: %w", err)
	}
	if err := api.FlattenConfig(&raw); err != nil {
		return "", nil, fmt.Errorf("kubeconfig: %w", err)
	}
	dir, err := os.MkdirTemp("", "kpr-kubeconfig-") // mode 0700
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	name = filepath.Join(dir, "config")
	if err := clientcmd.WriteToFile(raw, name); err != nil { // mode 0600
		remove()
		return "", nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return name, remove, nil
}
