package probe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/request"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/trace"
)

// AllNodes is the client that stands for each node.
const AllNodes = "all-nodes"

// Cluster is what clients are found in; kube.Client and a Source together.
type Cluster interface {
	Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	Nodes(ctx context.Context) ([]source.Node, error)
}

// Clients finds who is meant: pod/NAME, pod/NAMESPACE/NAME, node/NAME or
// all-nodes. The error says that the question is wrong, or that a pod cannot be
// read.
func Clients(ctx context.Context, in Cluster, from []string, namespace string) ([]Client, error) {
	nodes, err := in.Nodes(ctx)
	if err != nil && len(nodes) == 0 {
		return nil, err
	}
	var out []Client
	add := func(c Client) {
		if !slices.ContainsFunc(out, func(o Client) bool { return o.String() == c.String() }) {
			out = append(out, c)
		}
	}
	for _, s := range from {
		if s == AllNodes {
			for _, n := range nodes {
				add(nodeClient(n.Name))
			}
			continue
		}
		c, err := trace.ParseClient(s, namespace)
		if err != nil {
			return nil, fmt.Errorf("--from: %w, or all-nodes", err)
		}
		switch c.Kind {
		case trace.NodeClient:
			if !slices.ContainsFunc(nodes, func(n source.Node) bool { return n.Name == c.Name }) {
				return nil, fmt.Errorf("--from: node %q: not found; kubectl get nodes lists them", c.Name)
			}
			add(nodeClient(c.Name))
		case trace.PodClient:
			pod, err := in.Pod(ctx, c.Namespace, c.Name)
			if err != nil {
				return nil, fmt.Errorf("--from: %w", err)
			}
			one, err := PodClient(pod)
			if err != nil {
				return nil, fmt.Errorf("--from: %w", err)
			}
			add(one)
		default:
			return nil, fmt.Errorf("--from %q: a request from outside has to be made outside; want pod/NAME, node/NAME or all-nodes", s)
		}
	}
	return out, nil
}

func nodeClient(name string) Client {
	return Client{Client: request.Client{Kind: "node", Name: name, Node: name}}
}

// PodClient is a running pod as a client. One in the host's network has no IP
// of its own: it connects as its node does.
func PodClient(pod *corev1.Pod) (Client, error) {
	what := "pod " + pod.Namespace + "/" + pod.Name
	c := Client{Client: request.Client{Kind: "pod", Namespace: pod.Namespace, Name: pod.Name, Node: pod.Spec.NodeName}}
	switch {
	case pod.Spec.NodeName == "":
		return c, fmt.Errorf("%s: on no node yet", what)
	case pod.Status.Phase != corev1.PodRunning:
		return c, fmt.Errorf("%s: does not run, it is %s", what, strings.ToLower(string(pod.Status.Phase)))
	}
	if !pod.Spec.HostNetwork {
		if c.IP = pod.Status.PodIP; c.IP == "" {
			return c, fmt.Errorf("%s: has no address yet", what)
		}
	}
	preferred := pod.Annotations["kubectl.kubernetes.io/default-container"]
	for _, s := range pod.Status.ContainerStatuses {
		switch {
		case s.State.Running == nil:
		case s.Name == preferred:
			c.Containers = slices.Insert(c.Containers, 0, s.Name)
		default:
			c.Containers = append(c.Containers, s.Name)
		}
	}
	return c, nil
}
