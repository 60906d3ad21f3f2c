package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"

	"github.com/kubectl-kpr/kubectl-kpr/internal/sysdump"
)

// complete offers fixed words for a flag. Registering fails only for a flag
// that does not exist, which the tests of the command tree would show.
func complete(cmd *cobra.Command, flag string, words []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// completion offers what a cluster has for kubectl's own flags.
func (a *app) completion(root *cobra.Command) {
	factory := a.factory()
	completion.SetFactoryForCompletion(factory)
	of := func(f func(toComplete string) []string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return func(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			return f(toComplete), cobra.ShellCompDirectiveNoFileComp
		}
	}
	_ = root.RegisterFlagCompletionFunc("namespace", of(func(s string) []string {
		return completion.CompGetResource(factory, "namespace", s)
	}))
	_ = root.RegisterFlagCompletionFunc("context", of(completion.ListContextsInConfig))
	_ = root.RegisterFlagCompletionFunc("cluster", of(completion.ListClustersInConfig))
	_ = root.RegisterFlagCompletionFunc("user", of(completion.ListUsersInConfig))
}

func (a *app) factory() cmdutil.Factory {
	return cmdutil.NewFactory(genericclioptions.RESTClientGetter(a.flags))
}

// completeNodes offers node names for a flag: of the snapshot if one is named,
// else of the cluster.
func (a *app) completeNodes(cmd *cobra.Command, flag string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return a.nodeNames(cmd, toComplete), cobra.ShellCompDirectiveNoFileComp
	})
}

func (a *app) nodeNames(cmd *cobra.Command, prefix string) []string {
	path := ""
	if f := cmd.Flags().Lookup("snapshot"); f != nil {
		path = f.Value.String()
	}
	if path == "" {
		return completion.CompGetResource(a.factory(), "node", prefix)
	}
	snap, err := sysdump.OpenRecorded(path)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), 5*time.Second)
	defer cancel()
	nodes, err := snap.Nodes(ctx)
	if err != nil {
		return nil
	}
	var names []string
	for _, n := range nodes {
		if strings.HasPrefix(n.Name, prefix) {
			names = append(names, n.Name)
		}
	}
	return names
}
