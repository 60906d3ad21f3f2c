package host

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/live"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

// Pod is a pod on a node that runs one command after the other.
type Pod struct {
	runner         *Runner
	namespace, job string
	target         exec.Target
}

// Open starts a pod on the node that ends by itself after life, whatever
// becomes of this process. purpose is a label's value. Errors are those of RunOnHost.
func (r *Runner) Open(ctx context.Context, on live.HostNode, purpose string, life time.Duration) (*Pod, error) {
	random := make([]byte, 5)
	_, _ = rand.Read(random) // never fails, see crypto/rand
	p := &Pod{runner: r, namespace: on.Namespace, job: "kpr-host-" + hex.EncodeToString(random)}
	if err := r.jobs.Create(ctx, job(p.job, purpose, on, life)); err != nil {
		return nil, err
	}
	pod, err := r.running(ctx, on.Namespace, p.job)
	if err != nil {
		p.Close(ctx)
		return nil, err
	}
	p.target = exec.Target{Namespace: on.Namespace, Pod: pod, Container: container}
	return p, nil
}

// Run runs argv as root in the node's network and process namespaces, with
// input on its standard input if that is not nil.
func (p *Pod) Run(ctx context.Context, argv []string, input []byte, max exec.Limits) (exec.Result, error) {
	return p.runner.exec.RunWith(ctx, p.target, argv, input, max)
}

// Close removes the pod, also where ctx has ended. One that it cannot remove
// ends by itself.
func (p *Pod) Close(ctx context.Context) {
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = p.runner.jobs.Delete(after, p.namespace, p.job)
}

// Sweep removes the pods of a purpose in a namespace, such as a killed process
// has left. What it cannot remove ends by itself.
func (r *Runner) Sweep(ctx context.Context, namespace, purpose string) {
	_ = r.jobs.DeleteAll(ctx, namespace, Label+"="+Value+","+labelFor+"="+purpose)
}
