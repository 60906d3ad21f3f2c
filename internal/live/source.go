// Package live is the Source of a running cluster. The API server is asked for
// lists; each node is asked through its Cilium agent's pod, with every command
// in one exec, a bounded number of nodes at a time and within a deadline for
// each. A node that cannot be asked becomes an error with its reason for each
// query about it, and the others are answered all the same.
package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-kpr/kubectl-kpr/internal/kube"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

// Options are what New needs to know. Only Config must be set.
type Options struct {
	Config  *rest.Config
	Context string // kubeconfig context, for About

	// CiliumNamespace is where the agents are; "" looks in all namespaces.
	CiliumNamespace string
	// Select chooses the nodes that Nodes lists; nil means all.
	Select func(*corev1.Node) bool

	// Concurrency is how many nodes are asked at a time. Zero is 16, and 64
	// where what is asked of each is small.
	Concurrency int
	NodeTimeout time.Duration // for everything asked of one node, 20 s if zero

	// Within is a namespace: where the agent's version can, its list of
	// frontends is read for the Services in it only. "" reads all.
	Within string
	// Host, if not nil, is asked what only the hosts show.
	Host HostRunner
	// Drops is for how long the drops of each node are watched, zero for not.
	Drops time.Duration
	// ProbeAPI allows requests to the API server from each node.
	ProbeAPI bool

	Now func() time.Time // time.Now if nil
	// Progress, if not nil, is called after each node, never concurrently.
	Progress func(done, total int)
}

// Source is a running cluster. What it has learnt of nodes and agents it keeps
// for its lifetime; Again gives one that looks anew.
type Source struct {
	options Options
	kube    *kube.Client
	exec    *exec.Executor

	finding sync.Mutex // held during discovery
	seen    *roster    // nil until discovered

	mu    sync.Mutex
	about source.About
}

var _ source.Source = (*Source)(nil)

// New is the Source of a cluster. It makes no request.
func New(o Options) (*Source, error) {
	if o.Config == nil {
		return nil, errors.New("live source: no client configuration")
	}
	if o.NodeTimeout <= 0 {
		o.NodeTimeout = 20 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	k, err := kube.New(o.Config)
	if err != nil {
		return nil, fmt.Errorf("live source: %w", err)
	}
	e, err := exec.New(o.Config)
	if err != nil {
		return nil, fmt.Errorf("live source: %w", err)
	}
	s := &Source{options: o, kube: k, exec: e}
	s.about = source.About{Kind: "cluster", Name: o.Context, Context: o.Context, Server: o.Config.Host}
	return s, nil
}

// About describes the cluster; its version and the time are known once
// something was read.
func (s *Source) About() source.About {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.about
}

// Nodes lists the selected nodes. A node without an agent that can be asked
// has the reason, with the last line of the log of the container that hangs.
// Where Nodes may not be listed, those that run an agent come with the error.
// It fails where no Cilium is installed, or several are.
func (s *Source) Nodes(ctx context.Context) ([]source.Node, error) {
	r, err := s.roster(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.installed(ctx, r); err != nil {
		return nil, err
	}
	return slices.Clone(r.nodes), r.nodesErr
}

// Again is the same cluster, read anew.
func (s *Source) Again() (source.Source, bool) {
	fresh := &Source{options: s.options, kube: s.kube, exec: s.exec, about: s.About()}
	fresh.about.Recorded = time.Time{}
	return fresh, true
}
