// Package host runs commands on a node itself, where an agent's pod does not
// reach: the agent has the host's network namespace and nothing else of it. A
// pod with the host's process namespace does, for as long as it takes to ask
// it everything in one exec.
//
// It is the writing side of the option --host: reading packages know it only
// as a live.HostRunner. Whatever becomes of the client, the pod ends within 90
// seconds and its Job goes with it.
package host

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-kpr/kubectl-kpr/internal/kube"
	"github.com/kubectl-kpr/kubectl-kpr/internal/kube/write"
	"github.com/kubectl-kpr/kubectl-kpr/internal/live"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

// Runner is a live.HostRunner by Jobs. It is safe for concurrent use.
type Runner struct {
	jobs *write.Jobs
	core *core.CoreV1Client
	exec *exec.Executor
	warn *warnings
}

var _ live.HostRunner = (*Runner)(nil)

// New is a Runner for the cluster of config. It makes no request.
func New(config *rest.Config) (live.HostRunner, error) { return NewRunner(config) }

// NewRunner is New for who writes.
func NewRunner(config *rest.Config) (*Runner, error) {
	r := &Runner{warn: &warnings{}}
	var err error
	if r.jobs, err = write.NewJobs(config, r.warn); err != nil {
		return nil, fmt.Errorf("host pod: %w", err)
	}
	if r.core, err = core.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("host pod: client for core/v1: %w", err)
	}
	if r.exec, err = exec.New(config); err != nil {
		return nil, fmt.Errorf("host pod: %w", err)
	}
	return r, nil
}

// RunOnHost runs argv in a pod on the node and removes the pod again, also
// where ctx ends first. Errors wrap one of source's; a pod that Pod Security
// refuses is source.ErrForbidden in the policy's words.
func (r *Runner) RunOnHost(ctx context.Context, on live.HostNode, argv []string, max exec.Limits) (exec.Result, error) {
	pod, err := r.Open(ctx, on, "look", life)
	if err != nil {
		return exec.Result{}, err
	}
	defer pod.Close(ctx)
	return pod.Run(ctx, argv, nil, max)
}

// running waits for the pod of a Job and names it.
func (r *Runner) running(ctx context.Context, namespace, job string) (string, error) {
	what := "pod of job " + namespace + "/" + job
	for turn := 0; ; turn++ {
		pods, err := r.core.Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=" + job})
		if err != nil {
			return "", kube.Classify("list", what, err)
		}
		reason := "not created yet"
		for i := range pods.Items {
			pod := &pods.Items[i]
			var over bool
			if reason, over = state(pod); reason == "" {
				return pod.Name, nil
			} else if over {
				return "", fmt.Errorf("%s: %s: %w", what, reason, source.ErrUnreachable)
			}
		}
		// The controller tells of a pod that it may not create in an event only.
		if len(pods.Items) == 0 && turn%4 == 3 {
			if err := r.refused(ctx, namespace, job); err != nil {
				return "", err
			}
		}
		timer := time.NewTimer(250 * time.Millisecond)
		select {
		case <-ctx.Done():
			timer.Stop()
			return "", fmt.Errorf("%s: %s when time was up%s: %w", what, reason, r.warn.said(), source.ErrUnreachable)
		case <-timer.C:
		}
	}
}

// state says why a pod cannot be asked yet, "" if it can, and whether it never will.
func state(pod *corev1.Pod) (reason string, over bool) {
	for _, c := range pod.Status.ContainerStatuses {
		switch {
		case c.State.Running != nil:
			return "", false
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			w := c.State.Waiting
			stuck := strings.HasPrefix(w.Reason, "ErrImage") || strings.HasPrefix(w.Reason, "Create") && strings.HasSuffix(w.Reason, "Error")
			return strings.TrimSuffix(w.Reason+": "+w.Message, ": "), stuck
		}
	}
	phase := pod.Status.Phase
	return strings.ToLower("is " + string(phase)), phase == corev1.PodFailed || phase == corev1.PodSucceeded
}

// refused is the reason why the Job's controller could create no pod.
func (r *Runner) refused(ctx context.Context, namespace, job string) error {
	events, err := r.core.Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Job,involvedObject.name=" + job + ",reason=FailedCreate"})
	if err != nil || len(events.Items) == 0 {
		return nil // events may be forbidden; then the time runs out
	}
	return fmt.Errorf("job %s/%s could create no pod: %s: %w", namespace, job, events.Items[0].Message, source.ErrForbidden)
}

// warnings keeps what the API server warned of, once each: Pod Security says
// there why it will refuse the pod.
type warnings struct {
	mu   sync.Mutex
	last string
}

// HandleWarningHeaderWithContext is part of rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	if code == 299 && text != "" {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.last = text
	}
}

func (w *warnings) said() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == "" {
		return ""
	}
	return " (the API server warned: " + w.last + ")"
}
