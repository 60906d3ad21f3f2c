package machine

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

const mountinfo = `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 /../.. /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
42 31 0:38 /kpr-lab/kpr-w1 /elsewhere rw,relatime - cgroup2 cgroup2 rw
43 31 0:38 / /second rw,relatime - cgroup2 cgroup2 rw
`

// A tree is taken once, at its root, with the options that mount it again.
func TestHierarchies(t *testing.T) {
	want := []Hierarchy{
		{"/sys/fs/cgroup/cpu,cpuacct", "cpu,cpuacct"},
		{"/sys/fs/cgroup/cpuset", "cpuset"},
		{"/sys/fs/cgroup/systemd", "none,name=systemd"},
		{"/sys/fs/cgroup/unified", ""},
	}
	if got := hierarchies(mountinfo); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A crash may cut the last line; the entries before it count, latest first.
func TestLedgerAfterACrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "ledger")
	l := OpenLedger(path)
	for _, name := range []string{"a", "b"} {
		if err := l.Add(Entry{Kind: Netns, Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.WriteString(`{"kind":"netns","na`)
	_ = f.Close()
	got, err := l.Entries()
	if err != nil || len(got) != 2 || got[0].Name != "b" || got[1].Name != "a" {
		t.Errorf("%v %v", got, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := l.Entries(); err != nil || len(got) != 0 {
		t.Errorf("after Close: %v %v", got, err)
	}
}

// A process is told from a later one with the same number.
func TestProcessIsEndedOnlyIfItIsTheOne(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }()
	e := Entry{Kind: Process, Name: "sleep", PID: cmd.Process.Pid, Start: Started(cmd.Process.Pid)}
	if later := (Entry{Kind: Process, PID: e.PID, Start: e.Start + "1"}); later.Alive() || later.end() != nil {
		t.Error("another process of the same number counts as this one")
	}
	if !e.Alive() {
		t.Fatal("not alive")
	}
	if err := e.end(); err != nil || e.Alive() && !zombie(e.PID) {
		t.Errorf("end: %v", err)
	}
}
