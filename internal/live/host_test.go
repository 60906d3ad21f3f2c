package live

import (
	"context"
	"errors"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-kpr/kubectl-kpr/internal/live/livetest"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

// onThisMachine runs what is meant for a host here, with stand-ins on its PATH.
type onThisMachine struct {
	path string
	on   []HostNode
}

func (m *onThisMachine) RunOnHost(ctx context.Context, on HostNode, argv []string, _ exec.Limits) (exec.Result, error) {
	m.on = append(m.on, on)
	cmd := osexec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=" + m.path + ":" + os.Getenv("PATH")}
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	return exec.Result{Stdout: []byte(out.String()), Stderr: []byte(errs.String())}, err
}

func TestHost(t *testing.T) {
	bin := t.TempDir()
	for name, text := range map[string]string{
		"nsenter": "while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"\n",
		"nft":     "case \"$*\" in 'list tables') echo table ip kube-proxy;; 'list table ip kube-proxy') printf 'table ip kube-proxy {\\n}\\n';; *) echo no such table >&2; exit 1;; esac\n",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	server := livetest.New(t)
	server.AddAgent("n1", "1.20.2", map[string]livetest.Recording{statusCmd: {Stdout: "{}"}})
	runner := &onThisMachine{path: bin}
	src := open(t, server, func(o *Options) { o.Host = runner })
	all := collect(t, src, on("n1", source.Status, source.NFTRuleset)...)
	g := all[on("n1", source.NFTRuleset)[0]]
	if want := "table ip kube-proxy\ntable ip kube-proxy {\n}\n"; g.err != nil || strings.TrimSpace(string(g.artifact.Data)) != strings.TrimSpace(want) {
		t.Errorf("nft: %q, %v", g.artifact.Data, g.err)
	}
	if len(runner.on) != 1 || runner.on[0] != (HostNode{Name: "n1", Namespace: "kube-system", Image: "quay.io/cilium/cilium:v1.20.2"}) {
		t.Errorf("ran on %+v", runner.on)
	}
	// What nsenter does where the host has no such program.
	if err := os.WriteFile(filepath.Join(bin, "nft"), []byte("#!/bin/sh\nexit 127\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	g = collect(t, open(t, server, func(o *Options) { o.Host = runner }), on("n1", source.Status, source.NFTRuleset)...)[on("n1", source.NFTRuleset)[0]]
	if !errors.Is(g.err, source.ErrAbsent) {
		t.Errorf("without nft on the host: %v", g.err)
	}
	g = collect(t, open(t, server, nil), on("n1", source.Status, source.NFTRuleset)...)[on("n1", source.NFTRuleset)[0]]
	if !errors.Is(g.err, source.ErrAbsent) || !strings.Contains(g.err.Error(), "--host") {
		t.Errorf("without --host: %v", g.err)
	}
}
