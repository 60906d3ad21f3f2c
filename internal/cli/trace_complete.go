package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/completion"

	"github.com/kubectl-kpr/kubectl-kpr/internal/sysdump"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// completeTargets offers Services and, after "pod/", pods of the namespace: of
// the snapshot if one is named, else of the cluster.
func (a *app) completeTargets(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	if len(args) > 0 {
		return nil, none
	}
	kind, prefix, typed := strings.Cut(toComplete, "/")
	resource := "service"
	switch {
	case !typed:
		kind, prefix = "", toComplete
	case kind == "pod" || kind == "po" || kind == "pods":
		resource = "pod"
	case kind != "svc" && kind != "service" && kind != "services":
		return nil, none
	}
	var names []string
	for _, n := range a.objectNames(cmd, resource, prefix) {
		if typed {
			n = kind + "/" + n
		}
		names = append(names, n)
	}
	return names, none
}

// completeClients offers the kinds of clients, and their names.
func (a *app) completeClients(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	kind, prefix, typed := strings.Cut(toComplete, "/")
	if !typed {
		return []string{"pod/", "node/", "outside"}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	var found []string
	switch kind {
	case "node":
		found = a.nodeNames(cmd, prefix)
	case "pod":
		found = a.objectNames(cmd, "pod", prefix)
	}
	names := make([]string, len(found))
	for i, n := range found {
		names[i] = kind + "/" + n
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) objectNames(cmd *cobra.Command, resource, prefix string) []string {
	path := ""
	if f := cmd.Flags().Lookup("snapshot"); f != nil {
		path = f.Value.String()
	}
	if path == "" {
		return completion.CompGetResource(a.factory(), resource, prefix)
	}
	namespace, _, err := a.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil
	}
	snap, err := sysdump.OpenRecorded(path)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), 5*time.Second)
	defer cancel()
	store := fact.NewStore(nil)
	if err := snap.Collect(ctx, store.Queries(fact.Services, fact.EndpointSlices), store.Taker(fact.Services, fact.EndpointSlices)); err != nil {
		return nil
	}
	var names []string
	offer := func(ns, name string) {
		if ns == namespace && strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	if resource == "service" {
		services, _ := fact.Services.From(store.Cluster())
		for i := range services {
			offer(services[i].Namespace, services[i].Name)
		}
		return names
	}
	slices, _ := fact.EndpointSlices.From(store.Cluster())
	seen := map[string]bool{}
	for i := range slices {
		for _, e := range slices[i].Endpoints {
			if r := e.TargetRef; r != nil && r.Kind == "Pod" && !seen[r.Namespace+"/"+r.Name] {
				seen[r.Namespace+"/"+r.Name] = true
				offer(r.Namespace, r.Name)
			}
		}
	}
	return names
}
