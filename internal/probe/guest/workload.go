package guest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"github.com/kubectl-kpr/kubectl-kpr/internal/kube/write"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

const (
	managed = "app.kubernetes.io/managed-by"
	ours    = "kubectl-kpr"
	name    = "app.kubernetes.io/name"
	workers = "kpr-probe"
	// until says when a namespace is nobody's any more.
	until = "kubectl-kpr/until"
	// stay is how long pods live if nobody removes them.
	stay = 10 * time.Minute
	port = 8080
)

// Workload is a pod on each node that answers HTTP, and Services of several
// kinds before them, in a namespace of their own.
type Workload struct {
	Namespace string
	image     string
	now       func() time.Time
	write     *write.Namespaces
}

// NewWorkload is a Workload of Cilium's own image, whose health responder is the
// server. It makes no request.
func NewWorkload(config *rest.Config, image string, now func() time.Time) (*Workload, error) {
	if image == "" {
		return nil, fmt.Errorf("no image for a workload; name one of Cilium's with --image: %w", source.ErrAbsent)
	}
	random := make([]byte, 4)
	_, _ = rand.Read(random) // never fails, see crypto/rand
	n, err := write.NewNamespaces(config)
	if err != nil {
		return nil, err
	}
	return &Workload{Namespace: workers + "-" + hex.EncodeToString(random), image: image, now: now, write: n}, nil
}

// Words says what Deploy is about to make.
func (w *Workload) Words(nodes []string) string {
	return fmt.Sprintf("namespace %s with a pod (%s) on each of %d nodes and 4 Services; it is removed when the probe is over, and its pods end by themselves after %s", w.Namespace, w.image, len(nodes), stay)
}

// Deploy makes it, and waits until each pod is ready. What earlier runs left
// behind, which were killed, goes first.
func (w *Workload) Deploy(ctx context.Context, nodes []string) error {
	if err := w.sweep(ctx); err != nil {
		return err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: w.Namespace, Labels: map[string]string{managed: ours, name: workers, "pod-security.kubernetes.io/enforce": "restricted"},
		Annotations: map[string]string{until: w.now().Add(stay).UTC().Format(time.RFC3339)},
	}}
	if err := w.write.Create(ctx, ns); err != nil {
		return err
	}
	for _, s := range w.services() {
		if err := w.write.CreateService(ctx, s); err != nil {
			return err
		}
	}
	for i, node := range nodes {
		if err := w.write.CreatePod(ctx, w.pod(i, node)); err != nil {
			return err
		}
	}
	return w.wait(ctx, len(nodes))
}

func (w *Workload) wait(ctx context.Context, pods int) error {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	for {
		ready, why, err := w.write.Ready(ctx, w.Namespace)
		if err == nil && ready == pods {
			return nil
		}
		timer := time.NewTimer(500 * time.Millisecond)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("namespace %s: %d of %d pods were ready when time was up; %s: %w", w.Namespace, ready, pods, why, source.ErrUnreachable)
		case <-timer.C:
		}
	}
}

// pod names its node, so that it needs no scheduler, and runs as nobody.
func (w *Workload) pod(i int, node string) *corev1.Pod {
	no, yes, life, grace, user := false, true, int64(stay/time.Second), int64(0), int64(65532)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: workers + "-" + strconv.Itoa(i), Namespace: w.Namespace, Labels: map[string]string{managed: ours, name: workers}},
		Spec: corev1.PodSpec{
			NodeName: node, RestartPolicy: corev1.RestartPolicyNever, ActiveDeadlineSeconds: &life, TerminationGracePeriodSeconds: &grace,
			AutomountServiceAccountToken: &no, EnableServiceLinks: &no, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "server", Image: w.image, ImagePullPolicy: corev1.PullIfNotPresent,
				Command:         []string{"cilium-health-responder", "--listen", strconv.Itoa(port)},
				Ports:           []corev1.ContainerPort{{Name: "http", ContainerPort: port}},
				ReadinessProbe:  &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port)}}},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}
}

// services are those that every cluster can have: no balancer has to give
// addresses, and no address has to be free.
func (w *Workload) services() []*corev1.Service {
	dual := corev1.IPFamilyPolicyPreferDualStack
	local := corev1.ServiceInternalTrafficPolicyLocal
	one := func(kind string, typ corev1.ServiceType, change func(*corev1.ServiceSpec)) *corev1.Service {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: kind, Namespace: w.Namespace, Labels: map[string]string{managed: ours, name: workers}}, Spec: corev1.ServiceSpec{
			Type: typ, Selector: map[string]string{name: workers}, IPFamilyPolicy: &dual,
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(port)}},
		}}
		change(&s.Spec)
		return s
	}
	return []*corev1.Service{
		one("nodeport", corev1.ServiceTypeNodePort, func(*corev1.ServiceSpec) {}),
		one("nodeport-local", corev1.ServiceTypeNodePort, func(s *corev1.ServiceSpec) { s.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal }),
		one("affinity", corev1.ServiceTypeClusterIP, func(s *corev1.ServiceSpec) { s.SessionAffinity = corev1.ServiceAffinityClientIP }),
		one("internal-local", corev1.ServiceTypeClusterIP, func(s *corev1.ServiceSpec) { s.InternalTrafficPolicy = &local }),
	}
}

// Remove removes all of it, also where ctx is over.
func (w *Workload) Remove(ctx context.Context) error {
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	return w.write.Delete(after, w.Namespace)
}

// sweep removes what killed runs left: namespaces of ours whose time is over.
func (w *Workload) sweep(ctx context.Context) error {
	list, err := w.write.With(ctx, managed+"="+ours+","+name+"="+workers)
	if err != nil {
		return err
	}
	for _, ns := range list {
		end, err := time.Parse(time.RFC3339, ns.Annotations[until])
		if err == nil && end.After(w.now()) {
			continue // of a run that may be going on
		}
		if err := w.write.Delete(ctx, ns.Name); err != nil {
			return err
		}
	}
	return nil
}
