package main

import (
	"bytes"
	"testing"
)

func TestDebug(t *testing.T) {
	w := world{nodes: 5, services: 20, backends: 3, ingress: 2}
	f := &fleet{world: w, list: w.all(), recorded: "recorded", dir: t.TempDir(), kinds: map[string]*kind{}}
	var out, errOut bytes.Buffer
	code := f.run(3, []string{"sh", "-c", "echo $1 hi; cilium-dbg bpf lb list -o json | head -5", "kpr", "abcdef", "10", "100"}, &out, &errOut)
	t.Logf("%d %s %s", code, out.String(), errOut.String())
}
