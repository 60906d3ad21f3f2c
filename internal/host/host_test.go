package host

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-kpr/kubectl-kpr/internal/live"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

// cluster answers what a Runner asks an API server for.
type cluster struct {
	mu      sync.Mutex
	created []batchv1.Job
	deleted []string
	lists   int
	pods    func(list int) []corev1.Pod
	events  []corev1.Event
	refuse  int // status of the Job's creation, 0 for success
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	switch {
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/jobs") && c.refuse != 0:
		w.WriteHeader(c.refuse)
		answer(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(c.refuse), Reason: metav1.StatusReasonForbidden, Message: "jobs.batch is forbidden: no"})
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/jobs"):
		var j batchv1.Job
		_ = json.NewDecoder(r.Body).Decode(&j)
		c.created = append(c.created, j)
		w.Header().Set("Warning", `299 - "would violate PodSecurity \"restricted:latest\""`)
		answer(j)
	case r.Method == http.MethodDelete:
		c.deleted = append(c.deleted, r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
		answer(metav1.Status{Status: "Success"})
	case strings.HasSuffix(r.URL.Path, "/pods"):
		c.lists++
		answer(corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: c.pods(c.lists)})
	case strings.HasSuffix(r.URL.Path, "/events"):
		answer(corev1.EventList{TypeMeta: metav1.TypeMeta{Kind: "EventList", APIVersion: "v1"}, Items: c.events})
	default:
		http.NotFound(w, r)
	}
}

func waiting(reason, message string) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}}}
}

// Whatever goes wrong is told in the words of who refused, and the Job is
// removed again.
func TestRefusals(t *testing.T) {
	none := func(int) []corev1.Pod { return nil }
	for name, test := range map[string]struct {
		cluster *cluster
		class   error
		words   string
		left    bool // nothing to delete
	}{
		"the user may not": {&cluster{refuse: 403, pods: none}, source.ErrForbidden, "create jobs.batch", true},
		"pod security refuses": {&cluster{pods: none, events: []corev1.Event{{Message: `pods "x" is forbidden: violates PodSecurity "baseline:latest": privileged`}}},
			source.ErrForbidden, `violates PodSecurity "baseline:latest"`, false},
		"the controller is silent": {&cluster{pods: none}, source.ErrUnreachable, `not created yet when time was up (the API server warned: would violate PodSecurity`, false},
		"the image is not there":   {&cluster{pods: func(int) []corev1.Pod { return []corev1.Pod{waiting("ErrImagePull", "no such image")} }}, source.ErrUnreachable, "ErrImagePull: no such image", false},
		"the pod failed": {&cluster{pods: func(int) []corev1.Pod { return []corev1.Pod{{Status: corev1.PodStatus{Phase: corev1.PodFailed}}} }},
			source.ErrUnreachable, "is failed", false},
	} {
		t.Run(name, func(t *testing.T) {
			c := test.cluster
			server := httptest.NewServer(c)
			defer server.Close()
			r, err := New(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err = r.RunOnHost(ctx, live.HostNode{Name: "n1", Namespace: "kube-system", Image: "cilium:v1.20.2"}, []string{"true"}, exec.Limits{})
			if !errors.Is(err, test.class) || !strings.Contains(err.Error(), test.words) {
				t.Errorf("%v: want %q", err, test.words)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if gone := len(c.deleted) == 1 && c.deleted[0] == c.created[0].Name; !gone && !test.left {
				t.Errorf("deleted %v", c.deleted)
			}
		})
	}
}

// A killed client removes nothing: the pod and its Job must go by themselves.
func TestJobEndsByItself(t *testing.T) {
	j := job("kpr-host-0", "look", live.HostNode{Name: "n1", Namespace: "kube-system", Image: "cilium:v1.20.2"}, life)
	s := j.Spec
	p := s.Template.Spec
	switch {
	case s.ActiveDeadlineSeconds == nil || *s.ActiveDeadlineSeconds > 120, s.TTLSecondsAfterFinished == nil || *s.TTLSecondsAfterFinished != 0, s.BackoffLimit == nil || *s.BackoffLimit != 0:
		t.Errorf("it outlives its client: %+v", s)
	case p.NodeName != "n1" || !p.HostPID || !p.HostNetwork || p.RestartPolicy != corev1.RestartPolicyNever || *p.AutomountServiceAccountToken:
		t.Errorf("pod: %+v", p)
	case j.Labels[Label] != Value || s.Template.Labels[Label] != Value:
		t.Errorf("labels: %v", j.Labels)
	}
}
