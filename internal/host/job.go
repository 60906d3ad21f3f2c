package host

import (
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-kpr/kubectl-kpr/internal/live"
)

const (
	// Label marks every Job and pod of this package, with the value Value.
	Label = "app.kubernetes.io/managed-by"
	// Value is the label's value.
	Value = "kubectl-kpr"

	// labelFor tells what a pod is for: RunOnHost's to look, others to change.
	labelFor = "kpr.kubectl-kpr.io/for"

	container = "host"
	// life of RunOnHost is how long a pod lives if nobody removes it: longer than a node may
	// take to answer, short enough that a killed client leaves it behind for
	// less than two minutes.
	life = 90 * time.Second
)

// job is a Job with one pod on one node, in the host's network and process
// namespaces, which does nothing but wait for its commands. It names its node
// itself and tolerates everything, so it needs no scheduler, no CNI and no
// Service. The agent's image is on the node already.
//
// The pod ends by itself: sleep runs out, the Job's deadline kills what sleep
// did not end, and the Job's time to live is nothing, so that the controllers
// remove both whether or not the client is still there.
func job(name, purpose string, on live.HostNode, life time.Duration) *batchv1.Job {
	var (
		no, yes  = false, true
		deadline = int64(life / time.Second)
		zero     = int32(0)
		grace    = int64(1)
		root     = int64(0)
	)
	labels := map[string]string{Label: Value, "app.kubernetes.io/name": "kpr-host", labelFor: purpose}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: on.Namespace, Labels: labels},
		Spec: batchv1.JobSpec{
			ActiveDeadlineSeconds: &deadline, BackoffLimit: &zero, TTLSecondsAfterFinished: &zero,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeName: on.Name, HostNetwork: true, HostPID: true, RestartPolicy: corev1.RestartPolicyNever,
					AutomountServiceAccountToken: &no, EnableServiceLinks: &no, TerminationGracePeriodSeconds: &grace,
					PriorityClassName: "system-node-critical",
					Tolerations:       []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
					Containers: []corev1.Container{{
						Name: container, Image: on.Image, ImagePullPolicy: corev1.PullIfNotPresent,
						Command:         []string{"sleep", strconv.FormatInt(deadline, 10)},
						SecurityContext: &corev1.SecurityContext{Privileged: &yes, RunAsUser: &root},
					}},
				},
			},
		},
	}
}
