// Package kube reads from the Kubernetes API: lists in pages, single objects
// and pods' logs. What it returns is ready to be kept as evidence: objects as
// JSON with apiVersion and kind, without managedFields and without the
// last-applied annotation, and without the environment and arguments of pods
// that are neither Cilium's nor kube-proxy's. Nothing here changes a cluster.
package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	discoveryv1 "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Client reads from one cluster. It is safe for concurrent use.
type Client struct {
	core    *core.CoreV1Client
	apps    *appsv1.AppsV1Client
	slices  *discoveryv1.DiscoveryV1Client
	dynamic dynamic.Interface
	version *discovery.DiscoveryClient
}

// New is a Client for the cluster of config, which is copied: the copy gets
// limits of its own, because client-go's default of 5 requests a second makes
// the pods' logs of a large cluster wait for a minute.
func New(config *rest.Config) (*Client, error) {
	plain := rest.CopyConfig(config)
	plain.QPS, plain.Burst, plain.RateLimiter = 50, 100, nil
	if plain.Timeout == 0 {
		plain.Timeout = 30 * time.Second
	}
	if plain.UserAgent == "" {
		plain.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	// A list of services takes a third of the bytes in protobuf; custom
	// resources and whatever an aggregated server lacks come as JSON.
	typed := rest.CopyConfig(plain)
	typed.ContentType = "application/vnd.kubernetes.protobuf"
	typed.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	var c Client
	var err error
	if c.core, err = core.NewForConfig(typed); err != nil {
		return nil, fmt.Errorf("client for core/v1: %w", err)
	}
	if c.apps, err = appsv1.NewForConfig(typed); err != nil {
		return nil, fmt.Errorf("client for apps/v1: %w", err)
	}
	if c.slices, err = discoveryv1.NewForConfig(typed); err != nil {
		return nil, fmt.Errorf("client for discovery.k8s.io/v1: %w", err)
	}
	if c.dynamic, err = dynamic.NewForConfig(plain); err != nil {
		return nil, fmt.Errorf("client for custom resources: %w", err)
	}
	if c.version, err = discovery.NewDiscoveryClientForConfig(plain); err != nil {
		return nil, fmt.Errorf("client for the server's version: %w", err)
	}
	return &c, nil
}

// ServerVersion is the version of the API server, such as "v1.34.3".
func (c *Client) ServerVersion(ctx context.Context) (string, error) {
	var v struct {
		GitVersion string `json:"gitVersion"`
	}
	data, err := c.version.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		return "", Classify("get", "/version", err)
	}
	return v.GitVersion, nil
}

// ConfigMap reads one ConfigMap as JSON.
func (c *Client) ConfigMap(ctx context.Context, namespace, name string) ([]byte, error) {
	m, err := c.core.ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, Classify("get", "configmap "+namespace+"/"+name, err)
	}
	m.APIVersion, m.Kind = "v1", "ConfigMap"
	return encode(m)
}

// LogOptions choose a part of a container's log.
type LogOptions struct {
	Lines    int64 // from the end
	Bytes    int64 // at most, counted from the first of those lines
	Previous bool  // of the container's run before this one
}

// Log reads a container's log.
func (c *Client) Log(ctx context.Context, namespace, pod, container string, o LogOptions) ([]byte, error) {
	stream, err := c.core.Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{
		Container: container, Previous: o.Previous, TailLines: &o.Lines, LimitBytes: &o.Bytes}).Stream(ctx)
	what := "pods/log of " + namespace + "/" + pod
	switch {
	case apierrors.IsBadRequest(err): // the container has not run yet, or not twice
		return nil, fmt.Errorf("get %s: %w: %w", what, source.ErrAbsent, err)
	case err != nil:
		return nil, Classify("get", what, err)
	}
	defer stream.Close()
	// The server's limit is a request to somebody else's program.
	data, err := io.ReadAll(io.LimitReader(stream, o.Bytes))
	if err != nil {
		return data, fmt.Errorf("get %s: %w: %w", what, source.ErrCut, err)
	}
	return data, nil
}
