package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/internal/evidence"
	"github.com/kubectl-kpr/kubectl-kpr/internal/live/livetest"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source/sourcetest"
)

func TestConformance(t *testing.T) {
	fresh := func(t *testing.T) source.Source {
		server := livetest.New(t)
		for _, n := range []string{"n2", "n1"} {
			a := server.AddAgent(n, "1.16.3", map[string]livetest.Recording{statusCmd: {Stdout: "{}"}, "ss -lntuH": {}})
			a.Unasked, a.Unknown = true, true
		}
		server.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n3"}})
		server.Logs["kube-system/cilium-n1/cilium-agent"] = "one\ntwo\n"
		return open(t, server, func(o *Options) { o.NodeTimeout = 10 * time.Second })
	}
	sourcetest.Conformance(t, fresh, sourcetest.Want{
		Kind:  "cluster",
		Nodes: []source.Node{{Name: "n1"}, {Name: "n2"}, {Name: "n3", Reason: "no Cilium agent pod on this node"}},
		Data: map[source.Query]string{
			{Topic: source.Status, Node: "n1"}:    "{}",
			{Topic: source.Listeners, Node: "n2"}: "",
			{Topic: source.AgentLog, Node: "n1"}:  "one\ntwo\n",
		},
		Gaps: map[source.Query]error{
			{Topic: source.MapsDump, Node: "n1"}:     source.ErrAbsent,
			{Topic: source.Status, Node: "n3"}:       source.ErrAbsent,
			{Topic: source.InitLog, Node: "n1"}:      source.ErrAbsent,
			{Topic: source.LegacySave, Node: "n2"}:   source.ErrAbsent,
			{Topic: source.CiliumNodeConfigs}:        source.ErrAbsent,
			{Topic: source.AgentLog, Node: "absent"}: source.ErrAbsent,
		},
	})
}

// listed decodes a list artifact into apiVersion, kind and name of each item.
func listed(t *testing.T, data []byte) []string {
	t.Helper()
	var l struct {
		APIVersion, Kind string
		Items            []struct {
			APIVersion, Kind string
			Metadata         metav1.ObjectMeta
		}
	}
	if err := json.Unmarshal(data, &l); err != nil || l.Kind != "List" || l.APIVersion != "v1" {
		t.Fatalf("list %s %s: %v\n%s", l.APIVersion, l.Kind, err, data)
	}
	var names []string
	for _, i := range l.Items {
		names = append(names, i.APIVersion+" "+i.Kind+" "+i.Metadata.Namespace+"/"+i.Metadata.Name)
		if i.Metadata.ManagedFields != nil || len(i.Metadata.Annotations) > 0 {
			t.Errorf("%s keeps %v %v", i.Metadata.Name, i.Metadata.ManagedFields, i.Metadata.Annotations)
		}
	}
	return names
}

func TestListsInPages(t *testing.T) {
	for _, mode := range []string{"protobuf", "json", "expired"} {
		t.Run(mode, func(t *testing.T) {
			server := livetest.New(t)
			server.JSONOnly, server.ExpirePages, server.PageSize = mode == "json", mode == "expired", 2
			var want []string
			for i := range 5 {
				s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("s%d", i),
					ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
					Annotations:   map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}}}
				server.Add(s)
				want = append(want, "v1 Service default/"+s.Name)
			}
			g := collect(t, open(t, server, nil), source.Query{Topic: source.Services})[source.Query{Topic: source.Services}]
			if g.err != nil {
				t.Fatal(g.err)
			}
			if d := cmp.Diff(want, listed(t, g.artifact.Data)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			pages, media := 0, ""
			for _, r := range server.Requests() {
				if r.Path == "/api/v1/services" {
					pages, media = pages+1, r.Served
				}
			}
			wantMedia := map[string]string{"json": "application/json"}[mode]
			if wantMedia == "" {
				wantMedia = "application/vnd.kubernetes.protobuf"
			}
			if media != wantMedia || pages != 3 {
				t.Errorf("%d pages as %s, want 3 as %s", pages, media, wantMedia)
			}
		})
	}
}

func TestClusterTopics(t *testing.T) {
	server := livetest.New(t)
	server.AddAgent("n1", "1.20.2", nil)
	meta := func(ns, name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: ns, Name: name, Labels: labels}
	}
	mirror := &corev1.Pod{ObjectMeta: meta("kube-system", "kube-proxy-n1", nil)}
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	server.Add(mirror,
		&corev1.Pod{ObjectMeta: meta("kube-system", "coredns", nil)},
		&corev1.Pod{ObjectMeta: meta("shop", "web", nil)},
		&corev1.Pod{ObjectMeta: meta("dns", "cache", map[string]string{"app": "cache"})},
		&corev1.Pod{ObjectMeta: meta("shop", "elsewhere", map[string]string{"app": "cache"})},
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "cilium.io/v2", "kind": "CiliumLocalRedirectPolicy",
			"metadata": map[string]any{"namespace": "dns", "name": "cache"},
			"spec":     map[string]any{"redirectBackend": map[string]any{"localEndpointSelector": map[string]any{"matchLabels": map[string]any{"app": "cache"}}}}}},
		&corev1.Pod{ObjectMeta: meta("elsewhere", "kube-proxy-abcde", map[string]string{"k8s-app": "kube-proxy"})},
		&appsv1.DaemonSet{ObjectMeta: meta("kube-system", "cilium", nil)},
		&appsv1.DaemonSet{ObjectMeta: meta("kube-system", "rke2-kube-proxy", nil)},
		&appsv1.DaemonSet{ObjectMeta: meta("monitoring", "node-exporter", nil)},
		&corev1.ConfigMap{ObjectMeta: meta("kube-system", "cilium-config", nil), Data: map[string]string{"kube-proxy-replacement": "true"}},
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "cilium.io/v2alpha1", "kind": "CiliumNodeConfig",
			"metadata": map[string]any{"namespace": "kube-system", "name": "workers"}}})
	topics := []source.Topic{source.Pods, source.DaemonSets, source.CiliumNodeConfigs, source.CiliumConfig, source.Nodes, source.LocalRedirects}
	var qs []source.Query
	for _, topic := range topics {
		qs = append(qs, source.Query{Topic: topic})
	}
	all := collect(t, open(t, server, nil), qs...)
	want := map[source.Topic][]string{
		source.DaemonSets:        {"apps/v1 DaemonSet kube-system/cilium", "apps/v1 DaemonSet kube-system/rke2-kube-proxy"},
		source.CiliumNodeConfigs: {"cilium.io/v2alpha1 CiliumNodeConfig kube-system/workers"},
		source.Nodes:             {"v1 Node /n1"},
		source.LocalRedirects:    {"cilium.io/v2 CiliumLocalRedirectPolicy dns/cache"},
	}
	for topic, names := range want {
		g := all[source.Query{Topic: topic}]
		if g.err != nil {
			t.Errorf("%s: %v", topic, g.err)
			continue
		}
		if d := cmp.Diff(names, listed(t, g.artifact.Data)); d != "" {
			t.Errorf("%s (-want +got):\n%s", topic, d)
		}
	}
	pods := all[source.Query{Topic: source.Pods}].artifact.Data
	for name, wanted := range map[string]bool{"cilium-n1": true, "kube-proxy-n1": true, "kube-proxy-abcde": true, "cache": true, "coredns": false, "web": false, "elsewhere": false} {
		if n := strings.Count(string(pods), `"name":"`+name+`"`); (n == 1) != wanted || n > 1 {
			t.Errorf("pod %s is %d times in the list", name, n)
		}
	}
	config := all[source.Query{Topic: source.CiliumConfig}]
	if !strings.Contains(string(config.artifact.Data), `"kind":"ConfigMap"`) || config.artifact.Origin != "/api/v1/namespaces/kube-system/configmaps/cilium-config" {
		t.Errorf("cilium-config from %s: %s %v", config.artifact.Origin, config.artifact.Data, config.err)
	}
	if o := all[source.Query{Topic: source.CiliumNodeConfigs}].artifact.Origin; o != "/apis/cilium.io/v2alpha1/ciliumnodeconfigs" {
		t.Errorf("CiliumNodeConfigs from %s", o)
	}
}

// A list that is forbidden is one gap; what does not need it goes on.
func TestForbiddenLists(t *testing.T) {
	server := livetest.New(t)
	server.AddAgent("n1", "1.20.2", map[string]livetest.Recording{statusCmd: {Stdout: "{}"}})
	server.Forbid = []string{"endpointslices", "nodes"}
	qs := append(on("n1", source.Status), source.Query{Topic: source.EndpointSlices}, source.Query{Topic: source.Services}, source.Query{Topic: source.Nodes})
	s := open(t, server, nil)
	for q, g := range collect(t, s, qs...) {
		refused := q.Topic == source.EndpointSlices || q.Topic == source.Nodes
		if refused != errors.Is(g.err, source.ErrForbidden) || refused && !strings.Contains(g.err.Error(), "list "+string(q.Topic)) {
			t.Errorf("%v: %v", q, g.err)
		}
	}
	if nodes, err := s.Nodes(t.Context()); !errors.Is(err, source.ErrForbidden) || len(nodes) != 1 || nodes[0].Name != "n1" {
		t.Errorf("nodes that run agents come with the error: %v, %v", nodes, err)
	}
}

// One Cilium is looked at. None and several are the user's to mend; agents that
// are all gone below their DaemonSet are a finding.
func TestInstallations(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	set := func(namespace string) *appsv1.DaemonSet {
		ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "cilium", Namespace: namespace}}
		ds.Spec.Template.Labels = map[string]string{"k8s-app": "cilium"}
		return ds
	}
	other := livetest.AgentPod("n1", "1.20.2")
	other.Namespace = "cilium-test"
	for name, tc := range map[string]struct {
		objects   []runtime.Object
		namespace string
		want      error
	}{
		"none":                    {[]runtime.Object{node}, "", cilium.ErrNoAgents},
		"gone":                    {[]runtime.Object{node, set("kube-system")}, "", nil},
		"gone, somewhere else":    {[]runtime.Object{node, set("kube-system")}, "cilium-test", cilium.ErrNoAgents},
		"several":                 {[]runtime.Object{node, livetest.AgentPod("n1", "1.20.2"), other}, "", cilium.ErrAmbiguous},
		"several, one is chosen":  {[]runtime.Object{node, livetest.AgentPod("n1", "1.20.2"), other}, "cilium-test", nil},
		"several, none is chosen": {[]runtime.Object{node, livetest.AgentPod("n1", "1.20.2"), other}, "nowhere", cilium.ErrNoAgents},
	} {
		t.Run(name, func(t *testing.T) {
			server := livetest.New(t)
			server.Add(tc.objects...)
			s := open(t, server, func(o *Options) { o.CiliumNamespace = tc.namespace })
			nodes, err := s.Nodes(t.Context())
			if !errors.Is(err, tc.want) || (tc.want == nil && (err != nil || len(nodes) != 1)) {
				t.Errorf("%v, %v, want %v", nodes, err, tc.want)
			}
		})
	}
}

func TestNodesWithoutAgents(t *testing.T) {
	server := livetest.New(t)
	server.AddAgent("n1", "1.20.2", nil)
	stuck := livetest.AgentPod("n2", "1.20.2")
	stuck.Status = corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{
		{Name: "config", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
	server.Logs["kube-system/cilium-n2/config"] = "first\nlevel=info msg=\"Establishing connection to apiserver\"\n"
	server.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}, stuck, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n3", Labels: map[string]string{"pool": "a"}}})
	s := open(t, server, nil)
	nodes, err := s.Nodes(t.Context())
	want := []source.Node{{Name: "n1"},
		{Name: "n2", Reason: `init container config still runs; its last log line: level=info msg="Establishing connection to apiserver"`},
		{Name: "n3", Reason: "no Cilium agent pod on this node"}}
	if d := cmp.Diff(want, nodes); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	initLog := source.Query{Topic: source.InitLog, Node: "n2", Arg: "config"}
	all := collect(t, s, slices.Concat(on("n2", source.Status), []source.Query{initLog})...)
	if g := all[on("n2", source.Status)[0]]; !errors.Is(g.err, source.ErrUnreachable) || !strings.Contains(g.err.Error(), "init container config still runs") {
		t.Errorf("status: %v", g.err)
	}
	if g := all[initLog]; g.err != nil || !strings.HasPrefix(string(g.artifact.Data), "first\n") || g.artifact.Stem != "%s-init" {
		t.Errorf("init log: %q, %v", g.artifact.Data, g.err)
	}
	some := open(t, server, func(o *Options) { o.Select = func(n *corev1.Node) bool { return n.Labels["pool"] == "a" } })
	if nodes, _ := some.Nodes(t.Context()); len(nodes) != 1 || nodes[0].Name != "n3" {
		t.Errorf("selected nodes: %v", nodes)
	}
}

// Two installations are an error that says what to do; a chosen one is the
// only one that is seen.
func TestCiliumNamespace(t *testing.T) {
	server := livetest.New(t)
	server.AddAgent("n1", "1.20.2", nil)
	other := livetest.AgentPod("n2", "1.20.2")
	other.Namespace = "cilium-two"
	server.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}, other)
	g := collect(t, open(t, server, nil), on("n1", source.Status)...)[on("n1", source.Status)[0]]
	if !errors.Is(g.err, source.ErrAbsent) || !strings.Contains(g.err.Error(), "--cilium-namespace") {
		t.Errorf("both: %v", g.err)
	}
	s := open(t, server, func(o *Options) { o.CiliumNamespace = "cilium-two" })
	nodes, err := s.Nodes(t.Context())
	if d := cmp.Diff([]source.Node{{Name: "n1", Reason: "no Cilium agent pod on this node"}, {Name: "n2"}}, nodes); d != "" || err != nil {
		t.Errorf("chosen: %v (-want +got):\n%s", err, d)
	}
	pods := collect(t, s, source.Query{Topic: source.Pods})[source.Query{Topic: source.Pods}]
	if d := cmp.Diff([]string{"v1 Pod cilium-two/cilium-n2"}, listed(t, pods.artifact.Data)); d != "" {
		t.Errorf("pods (-want +got):\n%s", d)
	}
}

func TestUnreachableServer(t *testing.T) {
	server := livetest.New(t)
	s := open(t, server, func(o *Options) { o.Config.Host = "http://127.0.0.1:1" })
	err := s.Collect(t.Context(), on("n1", source.Status), func(source.Artifact, error) { t.Error("an answer") })
	if !errors.Is(err, source.ErrUnreachable) {
		t.Errorf("Collect: %v", err)
	}
	if _, err := New(Options{}); err == nil {
		t.Error("New without a configuration succeeds")
	}
}

func TestAgainReadsAnew(t *testing.T) {
	server := livetest.New(t)
	server.AddAgent("n1", "1.20.2", nil)
	s := open(t, server, nil)
	if _, err := s.Nodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}})
	next, ok := s.Again()
	nodes, err := next.Nodes(t.Context())
	if !ok || err != nil || len(nodes) != 2 {
		t.Errorf("again: %v %v", nodes, err)
	}
	if a := s.About(); a.Version != "v1.34.3" || a.Name != "test" || a.Recorded.IsZero() {
		t.Errorf("About: %+v", a)
	}
}

// The whole exec is one URL, and proxies commonly refuse those of more than
// 8 KiB.
func TestURLOfEverythingIsShort(t *testing.T) {
	var lists, sums []command // sums are asked for in place of lists, by status
	var beside []source.Topic
	for _, f := range []fact.Named{fact.Status, fact.Config, fact.AgentOf, fact.AgentVersion, fact.KubeProxy, fact.APIServer, fact.LBDigest} {
		beside = append(beside, f.Topics()...)
	}
	for _, it := range evidence.Items() {
		ask, ok := cilium.AskFor(it.Spec.Topic)
		c := command{ask.Argv, it.Cap, it.Timeout}
		if ok && !it.Spec.Summary {
			lists = append(lists, c)
		}
		if ok && slices.Contains(beside, it.Spec.Topic) && !slices.Contains(fact.Digested(), it.Spec.Topic) {
			sums = append(sums, c)
		}
	}
	for _, commands := range [][]command{lists, sums} {
		checkURL(t, commands)
	}
}

func checkURL(t *testing.T, commands []command) {
	t.Helper()
	v := url.Values{"container": {"cilium-agent"}, "stdout": {"true"}, "stderr": {"true"},
		"command": scriptArgv(strings.Repeat("0", 32), time.Minute, commands)}
	if n := len(v.Encode()); n > 7600 || len(commands) < 5 {
		t.Errorf("%d commands make a query of %d bytes", len(commands), n)
	}
}
