package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-kpr/kubectl-kpr/internal/live"
	"github.com/kubectl-kpr/kubectl-kpr/internal/sysdump"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// sourceFlags say where evidence comes from: the cluster of kubectl's own
// flags, or a snapshot.
type sourceFlags struct {
	clusterFlags
	snapshot string
}

func (f *sourceFlags) add(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&f.settle, "settle", 5*time.Second, "after how long to look again at findings that may pass; 0 looks once")
	cmd.Flags().StringVar(&f.snapshot, "snapshot", "", "look at this snapshot (directory, .tar.gz or .zip) in place of a cluster")
	f.clusterFlags.add(cmd)
}

func (f *sourceFlags) open(a *app) (source.Source, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	if f.snapshot != "" && (f.host || f.probeAPI || f.drops > 0) {
		return nil, errors.New("--host, --probe-api and --drops: ask a running cluster, which --snapshot is not; take the snapshot with them")
	}
	if f.snapshot != "" {
		return sysdump.OpenRecorded(f.snapshot)
	}
	return f.cluster(a)
}

// clusterFlags say how to treat a running cluster.
type clusterFlags struct {
	namespace   string
	within      string // the namespace that is enough, see live.Options
	concurrency int
	nodeTimeout time.Duration
	deadline    time.Duration
	settle      time.Duration
	host        bool
	drops       time.Duration
	probeAPI    bool
	progress    *progress
}

func (f *clusterFlags) add(cmd *cobra.Command) {
	f.addNamespace(cmd)
	fs := cmd.Flags()
	fs.IntVar(&f.concurrency, "concurrency", 0, "how many nodes to ask at a time; 0 is 16, and 64 where each tells little")
	fs.DurationVar(&f.nodeTimeout, "node-timeout", 20*time.Second, "how long a node may take to answer")
	fs.BoolVar(&f.host, "host", false, "also ask each host what its agent cannot see (nftables, netfilter's flows, k3s and RKE2 files), by a pod that is removed again")
	fs.BoolVar(&f.probeAPI, "probe-api", false, "also send one request to the API server from each node, at the address its agent, and an operator there, dials, with your credentials")
	fs.DurationVar(&f.drops, "drops", 0, "also watch what each node drops for so long, such as 10s, and explain it")
	fs.DurationVar(&f.deadline, "deadline", 2*time.Minute, "how long the whole run may take; a report appears by then")
}

func (f *clusterFlags) addNamespace(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.namespace, "cilium-namespace", "", "namespace of the Cilium agents, where several Ciliums are installed")
}

func (f *clusterFlags) validate() error {
	switch {
	case f.concurrency < 0 || f.concurrency > 512:
		return fmt.Errorf("--concurrency %d: want 0 to 512", f.concurrency)
	case f.nodeTimeout < time.Second:
		return fmt.Errorf("--node-timeout %s: want 1s or more", f.nodeTimeout)
	case f.drops < 0 || f.drops > 0 && (f.drops < time.Second || f.drops > time.Minute):
		return fmt.Errorf("--drops %s: want 1s to 1m", f.drops)
	case f.settle < 0:
		return fmt.Errorf("--settle %s: want 0 or more", f.settle)
	case f.deadline < f.nodeTimeout:
		return fmt.Errorf("--deadline %s: shorter than --node-timeout %s", f.deadline, f.nodeTimeout)
	}
	return nil
}

func (f *clusterFlags) cluster(a *app) (*live.Source, error) {
	config, err := a.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	raw, err := a.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	if len(raw.Clusters) == 0 && config.Host == "http://localhost:8080" { // client-go's answer to no configuration at all
		return nil, fmt.Errorf("kubeconfig: none found; set KUBECONFIG or --kubeconfig, or look at recorded evidence with --snapshot PATH")
	}
	name := raw.CurrentContext
	if a.flags.Context != nil && *a.flags.Context != "" {
		name = *a.flags.Context
	}
	var host live.HostRunner
	if f.host {
		if a.env.Host == nil {
			return nil, errors.New("--host: not available in this build")
		}
		if host, err = a.env.Host(config); err != nil {
			return nil, err
		}
		_, _ = fmt.Fprintln(a.env.ErrOut, "kubectl kpr: --host runs a privileged pod on each node, one exec long; it ends by itself within 90s")
	}
	f.progress = newProgress(a.env)
	return live.New(live.Options{
		Config: config, Host: host, ProbeAPI: f.probeAPI, Drops: f.drops, Within: f.within, Context: name, CiliumNamespace: f.namespace,
		Concurrency: f.concurrency, NodeTimeout: f.nodeTimeout,
		Now: a.env.Now, Progress: f.progress.show,
	})
}
