package guest

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-kpr/kubectl-kpr/internal/kube"
	"github.com/kubectl-kpr/kubectl-kpr/internal/kube/write"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

// prefix is how the names of ephemeral containers begin.
const prefix = "kpr-probe"

// life is how long an ephemeral container waits for requests.
const life = 15 * time.Minute

// Ephemeral gives pods ephemeral containers.
type Ephemeral struct {
	read  *kube.Client
	write *write.Pods
	image func(context.Context) string
	// allow says whether a container may be put into a pod; it is asked once
	// for each pod that has none.
	allow func(ctx context.Context, what string) error

	mu   sync.Mutex
	left []string
}

// NewEphemeral is an Ephemeral that makes containers of the image, which has to
// have bash. It makes no request.
func NewEphemeral(config *rest.Config, image func(context.Context) string, allow func(ctx context.Context, what string) error) (*Ephemeral, error) {
	e := &Ephemeral{image: image, allow: allow}
	var err error
	if e.read, err = kube.New(config); err != nil {
		return nil, err
	}
	if e.write, err = write.NewPods(config); err != nil {
		return nil, err
	}
	return e, nil
}

// Container is a running ephemeral container of the pod: the one that an
// earlier probe made, or a new one.
func (e *Ephemeral) Container(ctx context.Context, namespace, name string) (exec.Target, error) {
	e.mu.Lock()
	defer e.mu.Unlock() // questions are asked one after the other
	t := exec.Target{Namespace: namespace, Pod: name}
	pod, err := e.read.Pod(ctx, namespace, name)
	if err != nil {
		return t, err
	}
	if t.Container = running(pod); t.Container != "" {
		return t, nil
	}
	t.Container = prefix
	if n := len(pod.Spec.EphemeralContainers); n > 0 {
		t.Container += "-" + strconv.Itoa(n)
	}
	image := e.image(ctx)
	if image == "" {
		return t, fmt.Errorf("pod %s/%s: no image for an ephemeral container; name one with --image: %w", namespace, name, source.ErrAbsent)
	}
	what := fmt.Sprintf("ephemeral container %s (%s) in pod %s/%s; it ends after %s and stays in the pod's description until the pod goes", t.Container, image, namespace, name, life)
	if err := e.allow(ctx, "an "+what); err != nil {
		return t, err
	}
	if err := e.write.AddEphemeral(ctx, namespace, name, container(t.Container, image)); err != nil {
		return t, err
	}
	e.left = append(e.left, what)
	return t, e.started(ctx, t)
}

// container only waits. It asks for no privileges, so that it can join pods of
// every Pod Security level where its image's user may.
func container(name, image string) corev1.EphemeralContainer {
	no := false
	return corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{"sleep", strconv.Itoa(int(life / time.Second))},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no,
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}}
}

func running(pod *corev1.Pod) string {
	for _, s := range pod.Status.EphemeralContainerStatuses {
		if len(s.Name) >= len(prefix) && s.Name[:len(prefix)] == prefix && s.State.Running != nil {
			return s.Name
		}
	}
	return ""
}

func (e *Ephemeral) started(ctx context.Context, t exec.Target) error {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	for {
		reason := "not started"
		pod, err := e.read.Pod(ctx, t.Namespace, t.Pod)
		if err == nil {
			for _, s := range pod.Status.EphemeralContainerStatuses {
				switch {
				case s.Name != t.Container:
				case s.State.Running != nil:
					return nil
				case s.State.Terminated != nil:
					return fmt.Errorf("%s: container %s ended at once: %s: %w", t, t.Container, s.State.Terminated.Reason, source.ErrUnreachable)
				case s.State.Waiting != nil:
					reason = s.State.Waiting.Reason
				}
			}
		}
		timer := time.NewTimer(300 * time.Millisecond)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%s: container %s: %s when time was up: %w", t, t.Container, reason, source.ErrUnreachable)
		case <-timer.C:
		}
	}
}

// Left tells what was put into pods and stays there.
func (e *Ephemeral) Left() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.left...)
}
