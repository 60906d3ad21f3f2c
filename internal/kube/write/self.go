package write

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-kpr/kubectl-kpr/internal/kube"
)

// Self is who the API server takes the user of config for. Servers before 1.28
// do not tell (source.ErrAbsent).
func Self(ctx context.Context, config *rest.Config) (string, error) {
	client, err := authentication.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("client for authentication.k8s.io/v1: %w", err)
	}
	r, err := client.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", kube.Classify("create", "selfsubjectreviews", err)
	}
	return r.Status.UserInfo.Username, nil
}

// Cluster is the cluster's own identity, however it is reached: the UID of its
// namespace kube-system.
func Cluster(ctx context.Context, config *rest.Config) (string, error) {
	client, err := core.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("client for core/v1: %w", err)
	}
	ns, err := client.Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", kube.Classify("get", "namespace "+metav1.NamespaceSystem, err)
	}
	return string(ns.UID), nil
}
