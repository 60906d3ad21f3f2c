package lb_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// What testdata holds was recorded on a real cluster of three dual-stack
// nodes: Kubernetes 1.34.3, Cilium 1.20.2.

var recent = lb.Capabilities{
	ProtocolInRows: lb.Yes, WildcardRows: lb.Yes, SurrogatesOnlyInAgent: lb.Yes,
	Terminating: lb.Yes, InternalPolicy: lb.Yes, Exposure: lb.Yes,
}

// state is one recorded state of the cluster.
type state struct {
	t     *testing.T
	dir   string
	index *lb.Index
	nodes map[string]lb.NodeView
}

// layers are the three truths of one node.
type layers struct{ desired, agent, kernel lb.Table }

func load(t *testing.T, name string, kpr bool) state {
	t.Helper()
	s := state{t: t, dir: filepath.Join("testdata", name), nodes: map[string]lb.NodeView{}}
	var in lb.Inputs
	in.Services = items[corev1.ServiceList](t, s.dir, "services.json").Items
	in.Slices = items[discoveryv1.EndpointSliceList](t, s.dir, "endpointslices.json").Items
	in.Nodes = items[corev1.NodeList](t, "testdata", "nodes.json").Items
	in.AllPods = true
	s.index = lb.NewIndex(in)
	for i := range in.Nodes {
		v := lb.View(&in.Nodes[i])
		v.Exact = true
		v.NodePort, v.LoadBalancer, v.HostPort, v.ExternalIPs = lb.AnswerOf(kpr), lb.AnswerOf(kpr), lb.AnswerOf(kpr), lb.Yes
		s.nodes[v.Name] = v
	}
	return s
}

func items[T any](t *testing.T, path ...string) T {
	t.Helper()
	var v T
	data, err := os.ReadFile(filepath.Join(path...))
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func decoded[T any](t *testing.T, decode func([]byte) (T, error), path ...string) T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	v, err := decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (s state) on(node string, v lb.NodeView) layers {
	s.t.Helper()
	var fes []lb.Frontend
	if _, err := os.Stat(filepath.Join(s.dir, node, "service-list.json")); errors.Is(err, fs.ErrNotExist) {
		fes = decoded(s.t, cilium.DecodeServiceListText, s.dir, node, "service-list.txt")
	} else {
		fes = decoded(s.t, cilium.DecodeServiceListJSON, s.dir, node, "service-list.json")
	}
	rows := decoded(s.t, cilium.DecodeMapListText, s.dir, node, "bpf-lb-list.txt")
	slots := decoded(s.t, cilium.DecodeMapFrontendsText, s.dir, node, "bpf-lb-list-frontends.txt")
	dump := decoded(s.t, cilium.DecodeMapsDump, s.dir, node, "shell-lb-maps-dump.txt")
	return layers{
		desired: s.index.Desired(v, recent),
		agent:   lb.FromAgent(fes, v, recent),
		kernel:  lb.FromKernel(rows, slots, &dump, nil, v, recent),
	}
}

func (l layers) diffs() map[string][]lb.Delta {
	return map[string][]lb.Delta{
		"desired, agent":  lb.Diff(l.desired, l.agent, lb.DiffOptions{}),
		"agent, kernel":   lb.Diff(l.agent, l.kernel, lb.DiffOptions{}),
		"desired, kernel": lb.Diff(l.desired, l.kernel, lb.DiffOptions{}),
	}
}

func TestCleanCluster(t *testing.T) {
	for name, kpr := range map[string]bool{"clean": true, "kpr-false": false} {
		s := load(t, name, kpr)
		for node, v := range s.nodes {
			for pair, ds := range s.on(node, v).diffs() {
				for _, d := range ds {
					t.Errorf("%s, %s, %s: %s", name, node, pair, d)
				}
			}
		}
	}
}

// A snapshot may know no more of a node than its name.
func TestCleanClusterWithoutNodes(t *testing.T) {
	s := load(t, "clean", true)
	for node := range s.nodes {
		v := lb.NodeView{Name: node}
		v = v.Seen(s.on(node, v).agent)
		if v.NodePort != lb.Yes || v.LoadBalancer != lb.Unknown {
			t.Errorf("%s: the agent's rows say NodePort %s, LoadBalancer %s", node, v.NodePort, v.LoadBalancer)
		}
		for pair, ds := range s.on(node, v).diffs() {
			for _, d := range lb.Unexpected(ds) {
				t.Errorf("%s, %s: %s", node, pair, d)
			}
		}
	}
}

func TestCleanClusterIsReadAlikeFromTheDump(t *testing.T) {
	s := load(t, "clean", true)
	for node, v := range s.nodes {
		dump := decoded(t, cilium.DecodeMapsDump, s.dir, node, "shell-lb-maps-dump.txt")
		alone := lb.FromKernel(nil, nil, &dump, nil, v, recent)
		if l := s.on(node, v); l.kernel.Sum() != alone.Sum() {
			t.Errorf("%s: %s", node, cmp.Diff(l.kernel.Rows, alone.Rows))
		}
	}
}

// One backend was deleted from the backend map of kpr-w1. Nothing but the map
// shows it, and the map no longer has its address.
func TestDamagedMap(t *testing.T) {
	s := load(t, "damaged-map", true)
	for node, v := range s.nodes {
		l := s.on(node, v)
		if ds := lb.Diff(l.desired, l.agent, lb.DiffOptions{}); len(ds) > 0 {
			t.Errorf("%s: desired, agent: %v", node, ds)
		}
		ds := lb.Diff(l.agent, l.kernel, lb.DiffOptions{})
		if node != "kpr-w1" {
			if len(ds) > 0 {
				t.Errorf("%s: agent, kernel: %v", node, ds)
			}
			continue
		}
		var got []string
		for _, d := range ds {
			if d.Kind != lb.BackendLost || d.Backend.String() != "10.244.2.77:8080/TCP" || d.B != "backend 6 not found" || d.Expected != "" {
				t.Errorf("%s: %s", node, d)
			}
			got = append(got, d.Frontend.String())
		}
		want := []string{
			"0.0.0.0:30080/TCP", "10.96.35.162:80/TCP", "10.96.64.31:8082/TCP", "10.96.142.55:80/TCP",
			"10.96.159.138:80/TCP", "10.96.159.138:8443/TCP", "172.30.0.12:30080/TCP", "172.30.0.100:8082/TCP",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("frontends with a lost backend (-want +got):\n%s", diff)
		}
	}
}

// Slot 0 counts terminating backends as active where all terminate.
func TestTerminatingBackends(t *testing.T) {
	for _, name := range []string{"two-active-one-terminating", "all-terminating"} {
		s := load(t, name, true)
		l := s.on("kpr-w2", s.nodes["kpr-w2"])
		if ds := lb.Diff(l.agent, l.kernel, lb.DiffOptions{}); len(ds) > 0 {
			t.Errorf("%s: agent, kernel: %v", name, ds)
		}
		// The recording has the slices of this Service only.
		web := lb.Name{Namespace: "shop", Name: "web"}
		rows := 0
		for _, r := range l.desired.Of(web) {
			rows++
			draining := r.Cause == lb.AllDraining
			if draining != (name == "all-terminating") || len(r.Entries) != 3 || !r.Required() {
				t.Errorf("%s: desired row %+v", name, r)
			}
		}
		if rows != 2 {
			t.Errorf("%s: %d desired rows of %s, want one of each family", name, rows, web)
		}
		for _, d := range lb.Diff(l.desired, l.agent, lb.DiffOptions{}) {
			if d.Service == web {
				t.Errorf("%s: desired, agent: %s", name, d)
			}
		}
	}
}

// The states of a map may not have been read: its counts tell then.
func TestCountsWithoutStates(t *testing.T) {
	s := load(t, "two-active-one-terminating", true)
	v := s.nodes["kpr-w2"]
	l := s.on("kpr-w2", v)
	rows := decoded(t, cilium.DecodeMapListText, s.dir, "kpr-w2", "bpf-lb-list.txt")
	slots := decoded(t, cilium.DecodeMapFrontendsText, s.dir, "kpr-w2", "bpf-lb-list-frontends.txt")
	if ds := lb.Diff(l.agent, lb.FromKernel(rows, slots, nil, nil, v, recent), lb.DiffOptions{}); len(ds) > 0 {
		t.Errorf("with counts: %v", ds)
	}
	for i := range slots {
		if slots[i].Slot == 0 && slots[i].Frontend.String() == "10.96.79.132:80/TCP" {
			slots[i].Count, slots[i].Quarantined = 3, 0
		}
	}
	ds := lb.Diff(l.agent, lb.FromKernel(rows, slots, nil, nil, v, recent), lb.DiffOptions{})
	if len(ds) != 1 || ds[0].Kind != lb.CountDiffers || ds[0].A != "2" || ds[0].B != "3" {
		t.Errorf("with a wrong count: %v", ds)
	}
}

func TestNodesAgree(t *testing.T) {
	s := load(t, "clean", true)
	agents, kernels := map[string]lb.Table{}, map[string]lb.Table{}
	for node, v := range s.nodes {
		l := s.on(node, v)
		agents[node], kernels[node] = l.agent.Shared(), l.kernel.Shared()
	}
	for name, tables := range map[string]map[string]lb.Table{"agent": agents, "kernel": kernels} {
		// hubble-peer and web-local have Local policies: they differ by
		// design, nothing else does.
		if groups := lb.GroupBySum(tables); len(groups) != 3 {
			t.Errorf("%s: %d groups, want 3", name, len(groups))
		}
		for _, d := range lb.Diff(tables["kpr-cp"], tables["kpr-w1"], lb.DiffOptions{}) {
			switch d.Frontend.String() {
			case "10.96.198.138:80/TCP", "10.96.72.55:8081/TCP", "0.0.0.0:30081/TCP":
			default:
				t.Errorf("%s: %s", name, d)
			}
		}
	}
}
