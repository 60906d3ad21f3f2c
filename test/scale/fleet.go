package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// fleet are the agents. Nodes of one kind hold the same but for their own
// address; each kind runs a script once.
type fleet struct {
	world
	faults   faults
	list     []service
	recorded string // folder of one node's answers
	dir      string
	factor   float64 // of the time that agents sleep, 1 as measured

	mu     sync.Mutex
	kinds  map[string]*kind
	execs  atomic.Int64
	bytes  atomic.Int64
	slept  atomic.Int64 // nanoseconds, without what faults add
	unkept []string     // command lines without a recording
}

// kind is what nodes that hold the same have in common.
type kind struct {
	once  sync.Once
	shell shell
	err   error
	node  int // whose address stands in the answers

	mu      sync.Mutex
	answers map[string]*answer
}

// answer is what a script wrote on the first node of a kind.
type answer struct {
	once           sync.Once
	stdout, stderr template
	code           int
	busy           time.Duration
}

// The words of a script's exec: sh -c SCRIPT kpr NONCE SECONDS ERRCAP, then
// the commands.
const (
	nonceWord    = 4
	secondsWord  = 5
	firstCommand = 7
)

// run answers an exec in the agent of a node.
func (f *fleet) run(node int, argv []string, stdout, stderr io.Writer) int {
	f.execs.Add(1)
	if len(argv) < firstCommand || argv[3] != "kpr" {
		_, _ = io.WriteString(stderr, "the simulation knows no command but the script\n")
		return 127
	}
	k := f.kindOf(node)
	if k.err != nil {
		_, _ = fmt.Fprintln(stderr, k.err)
		return 127
	}
	a := f.answerOf(k, argv)
	wait := time.Duration(f.factor * float64(execTime+commandsTime(argv, f.services)+a.busy+transferTime(len(a.stdout.data))))
	f.slept.Add(int64(wait))
	time.Sleep(wait + f.faults.delay(f.nodes, node))
	for _, part := range []struct {
		text template
		to   io.Writer
	}{{a.stderr, stderr}, {a.stdout, stdout}} {
		f.bytes.Add(int64(len(part.text.data)))
		out := bufio.NewWriterSize(part.to, 64<<10)
		part.text.write(out, argv[nonceWord], nodeIP(node))
		_ = out.Flush() // fails where the client has left
	}
	return a.code
}

func (f *fleet) kindOf(node int) *kind {
	name := "all"
	d := f.faults.damage(f.world, node)
	switch {
	case d != (damage{}):
		name = fmt.Sprintf("lost-%d-stale-%d", d.lost, d.stale)
	case node < f.ingress:
		name = nodeName(node)
	}
	f.mu.Lock()
	k := f.kinds[name]
	if k == nil {
		k = &kind{node: node, answers: map[string]*answer{}}
		f.kinds[name] = k
	}
	f.mu.Unlock()
	k.once.Do(func() {
		var answers map[string][]byte
		if answers, k.err = f.answers(node, d); k.err == nil {
			k.shell, k.err = newShell(filepath.Join(f.dir, name), answers)
		}
	})
	return k
}

func (f *fleet) answerOf(k *kind, argv []string) *answer {
	key := slices.Clone(argv)
	key[nonceWord], key[secondsWord] = "", ""
	k.mu.Lock()
	name := strings.Join(key, "\x00")
	a := k.answers[name]
	if a == nil {
		a = &answer{}
		k.answers[name] = a
	}
	k.mu.Unlock()
	a.once.Do(func() {
		stdout, stderr, code, busy := k.shell.run(argv)
		a.code, a.busy = code, busy
		a.stdout, a.stderr = newTemplate(stdout, argv[nonceWord], nodeIP(k.node)), newTemplate(stderr, argv[nonceWord], nodeIP(k.node))
		f.note(stderr)
	})
	return a
}

// note keeps which commands had no recording: the simulation would be untrue.
func (f *fleet) note(stderr []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for line := range strings.Lines(string(stderr)) {
		if strings.HasPrefix(line, "no recording") && !slices.Contains(f.unkept, line) {
			f.unkept = append(f.unkept, line)
		}
	}
}

// answers are what a node's commands print, by command line.
func (f *fleet) answers(node int, d damage) (map[string][]byte, error) {
	h := f.hold(f.list, node, d)
	out := map[string][]byte{
		"cilium-dbg service list -o json": h.serviceList, "cilium-dbg bpf lb list -o json": h.mapList,
		"cilium-dbg bpf lb list --frontends -o json": h.mapFrontends, "cilium-dbg bpf lb list --source-ranges -o json": h.mapRanges,
		"cilium-dbg bpf lb list --backends -o json": h.mapBackends, "cilium-dbg shell -- lb/maps-dump": h.mapsDump,
		"cilium-dbg shell -- db/show frontends": h.frontendsTable,
		"iptables-legacy-save -c":               nil, "ip6tables-legacy-save -c": nil,
	}
	for command, file := range map[string]string{
		"cilium-dbg status -o json": "status.json", "cilium-dbg version -o json": "version.json", "cilium-dbg config --all": "config.txt",
		"ss -lntuH": "ss.txt", "ip -br addr": "ip-addr.txt", "iptables-nft-save -c": "iptables-nft-save.txt",
		"ip6tables-nft-save -c": "ip6tables-nft-save.txt", "bpftool cgroup show /run/cilium/cgroupv2": "bpftool-cgroup-show.txt",
	} {
		data, err := os.ReadFile(filepath.Join(f.recorded, file))
		if err != nil {
			return nil, err
		}
		out[command] = bytes.ReplaceAll(data, []byte("172.30.0.12"), []byte(nodeIP(node)))
	}
	return out, nil
}
