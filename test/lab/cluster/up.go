package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/machine"
	"github.com/kubectl-kpr/kubectl-kpr/test/lab/node"
	"github.com/kubectl-kpr/kubectl-kpr/test/lab/place"
	"github.com/kubectl-kpr/kubectl-kpr/test/lab/recipe"
)

// Up raises the lab on a base, as if it had been installed that way, and waits
// until the test pods run. What a run before left is removed first.
func (l *Lab) Up(ctx context.Context, store string, port int, base Base) error {
	if err := l.Down(ctx); err != nil {
		return fmt.Errorf("what an earlier run left: %w", err)
	}
	ledger := machine.OpenLedger(l.Dirs.Under("ledger"))
	for _, step := range []func() error{
		l.Dirs.KeepCilium,
		func() error { return machine.SaveSettings(ledger) },
		func() error { return machine.MakeFabric(ctx, ledger) },
		func() error { return l.servers(ledger, port) },
		func() error { return l.machines(ctx, ledger, store) },
		func() error { return l.ready(ctx) },
		func() error { return l.Converge(ctx, base) },
		func() error { return l.apps(ctx) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// servers makes the port on loopback and all that is signed.
func (l *Lab) servers(ledger *machine.Ledger, port int) error {
	if err := os.MkdirAll(l.Dirs.Under("audit"), 0o755); err != nil {
		return err
	}
	policy, err := manifest("audit.yaml")
	if err != nil {
		return err
	}
	if err := os.WriteFile(l.Dirs.Under("audit", "policy.yaml"), []byte(policy), 0o644); err != nil {
		return err
	}
	url, err := forward(l.Dirs, ledger, port)
	if err != nil {
		return err
	}
	l.Say("networks made, API server will be at %s", url)
	return writePKI(l.Dirs, url)
}

// machines starts every node with its images in place.
func (l *Lab) machines(ctx context.Context, ledger *machine.Ledger, store string) error {
	hs, err := machine.Hierarchies()
	if err != nil {
		return err
	}
	bin := l.Dirs.Under("bin")
	if err := l.binFolder(bin); err != nil {
		return err
	}
	nodes := place.Nodes()
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		if err := machine.MakeCgroups(ledger, hs, place.CgroupRoot, n.Name); err != nil {
			return err
		}
		wg.Go(func() {
			if errs[i] = recipe.Stock(store, l.Dirs.Node(n.Name, "containerd")); errs[i] == nil {
				errs[i] = node.Start(ctx, l.Dirs, ledger, n.Name, bin)
			}
		})
	}
	wg.Wait()
	l.Say("nodes started")
	return errors.Join(errs...)
}

// binFolder gives the nodes one folder with all binaries, which the cache has
// under a key each.
func (l *Lab) binFolder(dir string) error {
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	var err error
	for name, path := range l.Bins {
		err = errors.Join(err, os.Symlink(path, dir+"/"+name))
	}
	return err
}

func (l *Lab) ready(ctx context.Context) error {
	err := l.Until(ctx, "API server", 3*time.Minute, func(ctx context.Context) (bool, error) {
		_, err := l.Kubectl(ctx, "", "get", "--raw", "/readyz")
		return err == nil, err
	})
	l.Say("API server ready")
	if err != nil {
		return err
	}
	return l.Until(ctx, "nodes registered", 2*time.Minute, func(ctx context.Context) (bool, error) {
		var nodes struct{ Items []struct{} }
		err := l.Get(ctx, &nodes, "nodes")
		return len(nodes.Items) == len(place.Nodes()), err
	})
}

func (l *Lab) apps(ctx context.Context) error {
	yaml, err := manifest("apps.yaml")
	if err != nil {
		return err
	}
	if err := l.Apply(ctx, yaml); err != nil {
		return err
	}
	err = errors.Join(
		l.Rollout(ctx, "shop", "deploy/web", 5*time.Minute),
		l.Rollout(ctx, "shop", "ds/client", 5*time.Minute),
	)
	l.Say("test pods run")
	return err
}

// Down ends everything that the ledger holds, puts the kernel's settings back
// and removes the state folder.
func (l *Lab) Down(ctx context.Context) error {
	ledger := machine.OpenLedger(l.Dirs.Under("ledger"))
	lost, err := machine.Undo(ctx, ledger)
	for _, setting := range lost {
		l.Say("not put back until the next boot: %s", setting)
	}
	if err != nil {
		return err
	}
	return machine.Wipe(l.Dirs.State)
}

// Nodes tells for each node whether it runs, and under which PID.
func (l *Lab) Nodes() map[string]string {
	out := map[string]string{}
	for _, n := range place.Nodes() {
		if pid, err := node.PID(l.Dirs, n.Name); err != nil {
			out[n.Name] = err.Error()
		} else {
			out[n.Name] = fmt.Sprintf("runs, process %d", pid)
		}
	}
	return out
}
