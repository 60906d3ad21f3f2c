package live

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/internal/kube"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

// apiProbe answers the query for source.APIProbe: it sends one request to the
// API server through the node's host network, at the address, or at each, that
// the agent on it dials, and at that of an operator that sits there.
func (s *Source) apiProbe(ctx context.Context, r *roster, on cilium.Agent, q source.Query) (source.Artifact, error) {
	a := source.Artifact{Query: q, Format: source.JSON, Stem: string(source.APIProbe)}
	if !s.options.ProbeAPI {
		return a, fmt.Errorf("nobody asked for it, and --probe-api was not given: %w", source.ErrAbsent)
	}
	who, err := s.credentials(ctx, s.ciliumNamespace(r))
	if err != nil {
		return a, err
	}
	target := exec.Target{Namespace: on.Namespace, Pod: on.Pod, Container: on.Container}
	run := func(ctx context.Context, argv []string, streams exec.Streams) (int, error) {
		return s.exec.Stream(ctx, target, argv, streams)
	}
	var probes []agent.APIProbe
	for _, to := range s.apiAddresses(ctx, s.ciliumNamespace(r)) {
		p, err := who.probe(ctx, run, to)
		if err != nil {
			return a, err
		}
		probes = append(probes, p)
	}
	for _, to := range s.operatorAddresses(ctx, r, on.Node) {
		if i := slices.IndexFunc(probes, func(p agent.APIProbe) bool { return p.Host == to.host && p.Port == to.port }); i >= 0 {
			probes[i].By += " and " + strings.TrimPrefix(to.by, "environment ")
			continue
		}
		p, err := who.probe(ctx, run, to)
		if err != nil {
			return a, err
		}
		probes = append(probes, p)
	}
	a.Data, err = json.MarshalIndent(probes, "", "  ")
	a.Origin, a.Read = "GET https://ADDRESS/readyz by the network of pod "+target.String(), s.options.Now()
	return a, err
}

// address is where an agent finds the API server; without a host it is the one
// in its environment.
type address struct{ host, port, by string }

// apiAddresses are those that cilium-config names (1.18 and later), else the one
// of the environment. An agent tries them in no fixed order.
func (s *Source) apiAddresses(ctx context.Context, namespace string) []address {
	const key = "k8s-api-server-urls"
	var m struct {
		Data map[string]string `json:"data"`
	}
	if data, err := s.kube.ConfigMap(ctx, namespace, "cilium-config"); err == nil {
		_ = json.Unmarshal(data, &m)
	}
	var all []address
	for _, word := range strings.Fields(strings.ReplaceAll(m.Data[key], ",", " ")) {
		u, err := url.Parse(word)
		if err != nil || u.Hostname() == "" || len(all) == 8 {
			continue
		}
		port := u.Port()
		if port == "" {
			port = "443"
		}
		all = append(all, address{u.Hostname(), port, key})
	}
	if len(all) == 0 {
		all = []address{{by: "environment of the agent"}}
	}
	return all
}

// operatorAddresses are those of the environments of the operators on a node.
// One that shares the pod network is left out: it does not dial from the host's.
// Where its environment names none the kubelet's does, the ClusterIP. Keys of
// cilium-config hold for the operator too, and were tried for the agent.
func (s *Source) operatorAddresses(ctx context.Context, r *roster, node string) []address {
	var all []address
	for _, o := range r.operators {
		if o.Node != node || !o.HostNetwork {
			continue
		}
		to := address{o.Host, cmp.Or(o.Port, "443"), "environment of the operator"}
		if to.host == "" {
			to.host, to.port = s.kubernetesService(ctx)
		}
		if net.ParseIP(to.host) == nil && !plainHost.MatchString(to.host) || slices.Contains(all, to) || len(all) == 8 {
			continue
		}
		all = append(all, to)
	}
	return all
}

// plainHost is a name that may become a word of a command.
var plainHost = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)

// kubernetesService is the ClusterIP of default/kubernetes; "" if it cannot be
// had.
func (s *Source) kubernetesService(ctx context.Context) (host, port string) {
	resource, _ := kube.ResourceOf("services")
	_, _ = s.kube.List(ctx, resource, func(o kube.Object) bool {
		if svc, ok := o.(*corev1.Service); ok && svc.Name == "kubernetes" && len(svc.Spec.Ports) > 0 {
			host, port = svc.Spec.ClusterIP, strconv.Itoa(int(svc.Spec.Ports[0].Port))
		}
		return false
	}, nil, kube.Selection{Namespace: "default", Labels: "component=apiserver"})
	return host, port
}

// probe makes one request. The error is of the exec; what became of the
// request is in the probe.
func (w *credentials) probe(ctx context.Context, run runner, to address) (agent.APIProbe, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	begun := time.Now()
	argv := []string{"timeout", "-k", "2", fmt.Sprint(int(probeTime/time.Second) + 1), "bash", "-c", cilium.APIPump, "kpr"}
	if to.host != "" {
		argv = append(argv, to.host, to.port)
	}
	p := agent.APIProbe{Host: to.host, Port: to.port, By: to.by}
	conn, err := openPump(ctx, run, argv)
	if conn != nil {
		defer conn.Close()
		p.Host, p.Port = conn.host, conn.port
	}
	switch {
	case errors.Is(err, errNotConnected):
		p.Error, p.Took = conn.words(), time.Since(begun)
		return p, nil
	case err != nil:
		return p, err
	}
	p.Connected = true
	p.Verified, p.Status, err = w.request(ctx, conn, p.Host)
	if p.Took = time.Since(begun); err != nil {
		p.Error = cilium.PlainLine(err.Error(), 300)
	}
	return p, nil
}

// probeTime bounds one probe: an agent gives up an address after about as long.
const probeTime = 6 * time.Second

// Dial errors of a pump.
var errNotConnected = errors.New("not connected")

var _ net.Conn = (*pump)(nil)
