package act

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cli"
	"github.com/kubectl-kpr/kubectl-kpr/internal/kube/write"
	"github.com/kubectl-kpr/kubectl-kpr/internal/live"
	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
	"github.com/kubectl-kpr/kubectl-kpr/internal/plan/cluster"
	"github.com/kubectl-kpr/kubectl-kpr/internal/version"
)

// operatorLease keeps two operators apart, whatever plans they have.
const operatorLease = "kpr-operator"

// operation is what plans need of one cluster: a place for journals, a lease
// and who is at work.
type operation struct {
	env       cli.Env
	src       *live.Source
	nodes     int // of the cluster
	config    *rest.Config
	namespace string
	store     *write.ConfigMaps
	clock     *write.Clock
	copy      string // file of --journal
	operator  plan.Operator
	target    string // the cluster's own identity, however it is reached
}

// connect finds the cluster of the flags and its agents, whose namespace is the
// journals' too, and prepares to change it.
func (c *change) connect(ctx context.Context, share cli.Share, flags *cli.ClusterFlags) (*operation, error) {
	src, err := flags.Open(share)
	if err != nil {
		return nil, err
	}
	nodes, err := src.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		return nil, errors.New("the cluster has no nodes")
	}
	on, err := src.HostNode(ctx, nodes[0].Name)
	if err != nil {
		return nil, err
	}
	o, err := c.operate(ctx, share, on.Namespace)
	if err != nil {
		return nil, err
	}
	o.src, o.nodes = src, len(nodes)
	return o, nil
}

// operate prepares to change the cluster of the flags. Journals and the lease
// are in the namespace, which is Cilium's.
func (c *change) operate(ctx context.Context, share cli.Share, namespace string) (*operation, error) {
	config, err := share.Config()
	if err != nil {
		return nil, err
	}
	o := &operation{env: share.Env(), config: rest.CopyConfig(config), namespace: namespace, copy: c.journal}
	o.clock = write.NewClock(o.config, o.env.Now)
	if o.store, err = write.NewConfigMaps(o.config, namespace); err != nil {
		return nil, err
	}
	if o.target, err = write.Cluster(ctx, o.config); err != nil {
		return nil, err
	}
	o.operator = plan.Operator{User: o.env.Getenv("USER"), Tool: version.String()}
	o.operator.Host, _ = os.Hostname()
	if user, err := write.Self(ctx, o.config); err == nil {
		o.operator.User = user
	}
	return o, ctx.Err()
}

// open are the journals of a kind that are not closed.
func (o *operation) open(ctx context.Context, kind string) ([]cluster.Found, error) {
	all, err := cluster.Find(ctx, o.store, kind)
	if err != nil {
		return nil, fmt.Errorf("journals in %s: %w", o.namespace, err)
	}
	var out []cluster.Found
	for _, f := range all {
		if !f.Closed {
			out = append(out, f)
		}
	}
	return out, nil
}

// opening is the first entry of a journal.
func (o *operation) opening(ctx context.Context, id string) (*plan.Opening, error) {
	entries, err := cluster.New(o.store, id).Entries(ctx)
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", id, err)
	}
	if len(entries) == 0 || entries[0].Plan == nil {
		return nil, fmt.Errorf("journal %s: no plan was opened in it; remove its ConfigMaps in %s", id, o.namespace)
	}
	return entries[0].Plan, nil
}

// engine runs plans of a kind over the journal of that id, while no other of
// that kind is open.
func (o *operation) engine(kind, id string, tell func(plan.Progress)) (*plan.Engine, error) {
	random := make([]byte, 4)
	_, _ = rand.Read(random) // never fails, see crypto/rand
	identity := fmt.Sprintf("%s@%s/%d-%s", o.operator.User, o.operator.Host, os.Getpid(), hex.EncodeToString(random))
	lease, err := write.NewLease(o.config, o.namespace, operatorLease, identity)
	if err != nil {
		return nil, err
	}
	lease.Waiting = func(holder string) {
		_, _ = fmt.Fprintf(o.env.ErrOut, "kubectl kpr: %s holds the lease %s/%s; waiting whether it is alive\n", clean(holder), o.namespace, operatorLease)
	}
	var journal plan.Journal = cluster.New(o.store, id)
	if o.copy != "" {
		journal = plan.Copied{Main: journal, Copy: plan.NewFile(o.copy)}
	}
	return &plan.Engine{
		ID: id, Journal: journal, Now: o.env.Now, Server: o.clock.Server, Operator: o.operator, Tell: tell,
		Hold: func(ctx context.Context) (context.Context, func(), error) {
			held, release, err := lease.Hold(ctx)
			if err != nil {
				return nil, nil, err
			}
			if err := o.alone(held, kind, id); err != nil {
				release()
				return nil, nil, err
			}
			return held, release, nil
		},
	}, nil
}

// alone fails where somebody has begun a plan of the kind since this one was made.
func (o *operation) alone(ctx context.Context, kind, id string) error {
	found, err := o.open(ctx, kind)
	if err != nil {
		return err
	}
	for _, f := range found {
		if f.ID != id {
			return fmt.Errorf("journal %s was opened meanwhile; look again: %w", f.ID, plan.ErrRefused)
		}
	}
	return nil
}

// newID names a journal by its kind and time.
func newID(kind string, now time.Time) string {
	return kind + "-" + now.UTC().Format("20060102-150405")
}
