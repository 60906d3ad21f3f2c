package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/internal/live/livetest"
)

// cluster is a running simulation.
type cluster struct {
	server     *livetest.Server
	fleet      *fleet
	kubeconfig string
}

// start raises a cluster that lives until t ends. What it needs on disk is put
// into t's folders.
func start(t livetest.T, w world, fs faults, recorded string, factor float64) (*cluster, error) {
	dir := t.TempDir()
	f := &fleet{world: w, faults: fs, list: w.all(), recorded: recorded, dir: dir, factor: factor, kinds: map[string]*kind{}}
	server := livetest.New(t)
	server.Logs = map[string]string{}
	if err := addRecorded(server, recorded); err != nil {
		return nil, err
	}
	for i := range w.nodes {
		server.Add(nodeObject(i))
		a := server.AddPod(livetest.AgentPod(nodeName(i), "1.20.2"), nil)
		a.Run = func(argv []string, stdout, stderr io.Writer) int { return f.run(i, argv, stdout, stderr) }
		fs.arm(a, w.nodes, i)
	}
	for i := range f.list {
		server.Add(f.list[i].object(), f.list[i].slice())
	}
	c := &cluster{server, f, filepath.Join(dir, "kubeconfig")}
	return c, os.WriteFile(c.kubeconfig, fmt.Appendf(nil, kubeconfig, server.Config().Host), 0o600)
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: simulated, cluster: {server: %q}}]
users: [{name: simulated, user: {}}]
contexts: [{name: simulated, context: {cluster: simulated, user: simulated}}]
current-context: simulated
`

// addRecorded adds the objects that are as they were recorded.
func addRecorded(server *livetest.Server, recorded string) error {
	var config corev1.ConfigMap
	var sets appsv1.DaemonSetList
	for name, into := range map[string]any{"cilium-config.json": &config, "daemonsets.json": &sets} {
		data, err := os.ReadFile(filepath.Join(recorded, name))
		if err != nil {
			return err
		}
		if err := json.Unmarshal(data, into); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	server.Add(&config)
	for i := range sets.Items {
		server.Add(&sets.Items[i])
	}
	return nil
}

// calls counts the requests by what they are for.
func (c *cluster) calls() map[string]int {
	n := map[string]int{}
	for _, r := range c.server.Requests() {
		switch {
		case strings.HasSuffix(r.Path, "/exec"):
			n["exec"]++
		case strings.HasSuffix(r.Path, "/log"):
			n["log"]++
		case strings.Contains(r.Query, "limit="):
			n["list"]++
		default:
			n["get"]++
		}
	}
	return n
}
