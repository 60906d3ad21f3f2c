package write

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-kpr/kubectl-kpr/internal/kube"
)

var (
	// ErrHeld says that another operator has the lease, and is alive.
	ErrHeld = errors.New("another operator is at work")
	// ErrLost says that the lease could not be renewed in time, or was taken.
	ErrLost = errors.New("the lease was lost")
)

// Lease keeps two operators from changing a cluster at the same time. Who dies
// while holding it is overtaken once it has not been renewed for Life, by the
// clock of who waits: clocks of two machines are never compared.
type Lease struct {
	Namespace, Name string
	Identity        string        // of this process, unlike any other's
	Life            time.Duration // whole seconds; 0 for half a minute
	// Waiting hears who has it, once.
	Waiting func(holder string)

	client *coordination.CoordinationV1Client
}

// NewLease is a lease in the cluster of config. It makes no request.
func NewLease(config *rest.Config, namespace, name, identity string) (*Lease, error) {
	client, err := coordination.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for coordination.k8s.io/v1: %w", err)
	}
	return &Lease{Namespace: namespace, Name: name, Identity: identity, client: client}, nil
}

// Hold takes the lease and keeps it until release is called or the context
// that it gives has ended, with ErrLost as its cause where that was the reason.
// It waits no longer than it takes to tell a dead holder from one that lives.
func (l *Lease) Hold(ctx context.Context) (context.Context, func(), error) {
	life := l.Life
	if life == 0 {
		life = 30 * time.Second
	}
	what := "lease " + l.Namespace + "/" + l.Name
	holder, err := l.holder(ctx)
	if err != nil {
		return nil, nil, kube.Classify("get", what, err)
	}
	if holder != "" && holder != l.Identity && l.Waiting != nil {
		l.Waiting(holder)
	}
	held, lose := context.WithCancelCause(ctx)
	stop, end := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), logr.Discard()))
	got, over := make(chan struct{}), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: l.Name}, Client: l.client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: l.Identity},
		},
		LeaseDuration: life, RenewDeadline: life * 2 / 3, RetryPeriod: life / 8, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(got) },
			OnStoppedLeading: func() { lose(fmt.Errorf("%s: %w", what, ErrLost)) },
		},
	})
	if err != nil {
		end()
		return nil, nil, fmt.Errorf("%s: %w", what, err)
	}
	go func() { defer close(over); elector.Run(stop) }()
	release := func() { end(); <-over; lose(context.Canceled) }
	timer := time.NewTimer(life + life/2)
	defer timer.Stop()
	select {
	case <-got:
		return held, release, nil
	case <-ctx.Done():
		release()
		return nil, nil, ctx.Err()
	case <-timer.C:
		release()
		if now, err := l.holder(ctx); err != nil {
			return nil, nil, kube.Classify("update", what, err)
		} else if now != "" {
			return nil, nil, fmt.Errorf("%s is held by %s, who renews it: %w", what, now, ErrHeld)
		}
		return nil, nil, fmt.Errorf("%s: it can be read and not taken; create and update leases.coordination.k8s.io are needed: %w", what, ErrHeld)
	}
}

// holder is who has the lease, "" if nobody.
func (l *Lease) holder(ctx context.Context) (string, error) {
	lease, err := l.client.Leases(l.Namespace).Get(ctx, l.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil || lease.Spec.HolderIdentity == nil {
		return "", err
	}
	return *lease.Spec.HolderIdentity, nil
}
