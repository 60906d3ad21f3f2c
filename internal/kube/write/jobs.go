// Package write changes clusters: it is the one package that holds a client's
// writing verbs. Nothing that only reads can import it.
package write

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	batch "k8s.io/client-go/kubernetes/typed/batch/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-kpr/kubectl-kpr/internal/kube"
)

// manager is the field manager of all writes.
const manager = "kubectl-kpr"

// Jobs creates and removes Jobs. It is safe for concurrent use.
type Jobs struct{ client *batch.BatchV1Client }

// NewJobs makes Jobs for the cluster of config, which is copied. Warnings of
// the API server, such as those of Pod Security, go to warn.
func NewJobs(config *rest.Config, warn rest.WarningHandlerWithContext) (*Jobs, error) {
	c := rest.CopyConfig(config)
	c.WarningHandlerWithContext = warn
	client, err := batch.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("client for batch/v1: %w", err)
	}
	return &Jobs{client}, nil
}

// Create creates a Job. Errors wrap one of source's.
func (j *Jobs) Create(ctx context.Context, job *batchv1.Job) error {
	_, err := j.client.Jobs(job.Namespace).Create(ctx, job, metav1.CreateOptions{FieldManager: manager})
	if err != nil {
		return kube.Classify("create", "jobs.batch in "+job.Namespace, err)
	}
	return nil
}

// Delete deletes a Job and, in the background, its pods. One that is gone
// already is no error.
func (j *Jobs) Delete(ctx context.Context, namespace, name string) error {
	policy := metav1.DeletePropagationBackground
	err := j.client.Jobs(namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &policy})
	if err != nil && !apierrors.IsNotFound(err) {
		return kube.Classify("delete", "jobs.batch "+namespace+"/"+name, err)
	}
	return nil
}

// DeleteAll deletes the Jobs with a label and, in the background, their pods.
func (j *Jobs) DeleteAll(ctx context.Context, namespace, selector string) error {
	policy := metav1.DeletePropagationBackground
	err := j.client.Jobs(namespace).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &policy}, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return kube.Classify("deletecollection", "jobs.batch in "+namespace, err)
	}
	return nil
}
