package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// metadataOnly asks for a list without the objects' data: of Secrets nothing
// else than names and labels is wanted.
const metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// HelmRelease reads the newest deployed revision of a Helm release, as Helm
// stores it in a Secret, and the path it was read from. It is the one Secret
// that is ever read: the others are listed by their metadata only.
//
// Source: pkg/storage/driver/secrets.go of Helm 3 (labels owner, name, status
// and version).
func (c *Client) HelmRelease(ctx context.Context, namespace, name string) (data []byte, path string, err error) {
	selector := labels.Set{"owner": "helm", "status": "deployed", "name": name}.String()
	what := "secrets of " + namespace
	raw, err := c.core.RESTClient().Get().Namespace(namespace).Resource("secrets").
		Param("labelSelector", selector).SetHeader("Accept", metadataOnly).Do(ctx).Raw()
	if err != nil {
		return nil, "", Classify("list", what, err)
	}
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, "", fmt.Errorf("list %s: %w: %w", what, source.ErrUnreachable, err)
	}
	if len(list.Items) == 0 {
		return nil, "", fmt.Errorf("list %s: no deployed Helm release %q: %w", what, name, source.ErrAbsent)
	}
	newest := slices.MaxFunc(list.Items, func(a, b metav1.PartialObjectMetadata) int { return cmp.Compare(revision(a), revision(b)) })
	path = "/api/v1/namespaces/" + namespace + "/secrets/" + newest.Name
	secret, err := c.core.Secrets(namespace).Get(ctx, newest.Name, metav1.GetOptions{})
	if err != nil {
		return nil, path, Classify("get", "secret "+namespace+"/"+newest.Name, err)
	}
	return secret.Data["release"], path, nil
}

func revision(m metav1.PartialObjectMetadata) int {
	n, _ := strconv.Atoi(m.Labels["version"])
	return n
}
