package source_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source/sourcetest"
)

var read = time.Date(2025, 6, 7, 8, 9, 10, 11, time.UTC)

func memory() *sourcetest.Memory {
	return &sourcetest.Memory{
		Info: source.About{Name: "prod", Context: "prod", Server: "https://10.0.0.1:6443", Version: "v1.33.4"},
		Files: map[string]string{
			"services.yaml":            "kind: ServiceList\n",
			"nodes/n1/status.json":     "{}",
			"nodes/n1/config-init.log": "x\n",
			"nodes/n2/ss-lntup.txt":    "",
		},
		Exits:   map[string]int{"nodes/n1/status.json": 1},
		Read:    read,
		Reasons: map[string]string{"n3": "no agent pod on it"},
		Errors: map[source.Query]error{
			{Topic: source.Status, Node: "n2"}:      &wrapped{"status on n2: forbidden: pods/exec", source.ErrForbidden},
			{Topic: source.Config, Node: "n2"}:      &wrapped{"no class at all", nil},
			{Topic: source.ServiceList, Node: "n2"}: &wrapped{"peer\x1b[2J gone", source.ErrCut},
		},
	}
}

type wrapped struct {
	text string
	of   error
}

func (w *wrapped) Error() string { return w.text }
func (w *wrapped) Unwrap() error { return w.of }

func ask() []source.Query {
	return []source.Query{
		{Topic: source.Services},
		{Topic: source.Pods},
		{Topic: source.Status, Node: "n1"},
		{Topic: source.Status, Node: "n1"},
		{Topic: source.InitLog, Node: "n1", Arg: "config"},
		{Topic: source.Listeners, Node: "n2"},
		{Topic: source.Status, Node: "n2"},
		{Topic: source.Config, Node: "n2"},
		{Topic: source.ServiceList, Node: "n2"},
	}
}

func TestRecord(t *testing.T) {
	var b bytes.Buffer
	w := source.NewTarWriter(&b, "kpr-prod")
	sum, err := source.Record(t.Context(), memory(), ask(), w, info())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, m := range sum.Members {
		paths = append(paths, m.Path)
	}
	wantPaths := []string{"nodes/n1/config-init.log", "nodes/n1/status.json", "nodes/n2/ss-lntup.txt", "services.yaml"}
	if d := cmp.Diff(wantPaths, paths); d != "" {
		t.Errorf("members (-want +got):\n%s", d)
	}
	wantGaps := []source.Gap{
		{Topic: source.Config, Node: "n2", Class: source.Unreachable, Reason: "no class at all"},
		{Topic: source.Pods, Class: source.Absent, Reason: `pods on "": not there`},
		{Topic: source.ServiceList, Node: "n2", Class: source.Cut, Reason: "peer [2J gone"},
		{Topic: source.Status, Node: "n2", Class: source.Forbidden, Reason: "forbidden: pods/exec"},
	}
	if d := cmp.Diff(wantGaps, sum.Gaps); d != "" {
		t.Errorf("gaps (-want +got):\n%s", d)
	}
	if sum.Bytes != 22 || sum.End.Sub(sum.Start) != time.Second || len(sum.Nodes) != 3 {
		t.Errorf("summary %+v, want 22 bytes, 1s, 3 nodes", sum)
	}

	s := openSnapshot(t, keepFile(t, b.Bytes()))
	about := source.About{
		Kind: "snapshot", Name: s.About().Name, Context: "prod", Server: "https://10.0.0.1:6443", Version: "v1.33.4", Cilium: []string{"1.17.6"}, Recorded: sum.Start, Tool: "v1.0.0",
	}
	if d := cmp.Diff(about, s.About()); d != "" {
		t.Errorf("About (-want +got):\n%s", d)
	}
	nodes, err := s.Nodes(t.Context())
	if d := cmp.Diff([]source.Node{{Name: "n1"}, {Name: "n2"}, {Name: "n3", Reason: "no agent pod on it"}}, nodes); d != "" || err != nil {
		t.Errorf("Nodes: %v (-want +got):\n%s", err, d)
	}
	q := source.Query{Topic: source.Status, Node: "n1"}
	got := sourcetest.Collect(t, s, []source.Query{q})[q].Artifact
	if got.Exit != 1 || !got.Read.Equal(read) || string(got.Data) != "{}" || got.Origin != "nodes/n1/status.json" {
		t.Errorf("status of n1: %+v", got)
	}
}

func TestTarIsDeterministic(t *testing.T) {
	pack := func() []byte {
		var b bytes.Buffer
		w := source.NewTarWriter(&b, "kpr")
		if _, err := source.Record(t.Context(), memory(), ask(), w, info()); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	first := pack()
	if !bytes.Equal(first, pack()) {
		t.Error("the same evidence gives other bytes")
	}
	z, err := gzip.NewReader(bytes.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Mode != 0o644 || h.Uid != 0 || h.Uname != "" || h.Format != tar.FormatUSTAR {
			t.Errorf("%s: header %+v", h.Name, h)
		}
		if last = h.Name; last == "kpr/services.yaml" && !h.ModTime.Equal(read.Truncate(time.Second)) {
			t.Errorf("%s: time %v, want %v", h.Name, h.ModTime, read)
		}
	}
	if last != "kpr/snapshot.yaml" {
		t.Errorf("the last member is %s, want snapshot.yaml", last)
	}
}

func TestRecordFails(t *testing.T) {
	t.Run("write", func(t *testing.T) {
		full := errors.New("no space left")
		w := source.NewTarWriter(failing{full}, "kpr")
		big := memory()
		noise := make([]byte, 1<<20)
		for i := range noise {
			noise[i] = byte(i * i >> 7)
		}
		big.Files["services.yaml"] = string(noise)
		_, err := source.Record(t.Context(), big, ask(), w, info())
		if closing := w.Close(); !errors.Is(err, full) && !errors.Is(closing, full) {
			t.Errorf("Record %v, Close %v, want %v", err, closing, full)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		dir := filepath.Join(t.TempDir(), "new")
		w, err := source.NewDirWriter(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if _, err := source.Record(ctx, memory(), ask(), cancelling{w, cancel}, info()); !errors.Is(err, context.Canceled) {
			t.Errorf("Record: %v, want cancelled", err)
		}
		if _, err := os.Stat(filepath.Join(dir, "snapshot.yaml")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a recording that was broken off has a snapshot.yaml (%v)", err)
		}
	})
	t.Run("deadline", func(t *testing.T) {
		ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
		defer cancel()
		var b bytes.Buffer
		w := source.NewTarWriter(&b, "kpr")
		sum, err := source.Record(ctx, memory(), ask(), w, info())
		if err != nil || len(sum.Gaps) != 8 || sum.NodesGap == nil {
			t.Errorf("Record: %d gaps, nodes %v, %v, want 8 gaps and no error", len(sum.Gaps), sum.NodesGap, err)
		}
	})
	t.Run("nothing could be asked", func(t *testing.T) {
		s := openSnapshot(t, unpackDir(t, files()))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := source.Record(ctx, s, ask(), source.NewTarWriter(io.Discard, "kpr"), info()); !errors.Is(err, source.ErrUnreachable) {
			t.Errorf("Record: %v, want unreachable", err)
		}
	})
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

type cancelling struct {
	source.SnapshotWriter
	cancel func()
}

func (c cancelling) Add(path string, data []byte, at time.Time) error {
	c.cancel()
	return c.SnapshotWriter.Add(path, data, at)
}

func TestWriters(t *testing.T) {
	open := map[string]func() source.SnapshotWriter{
		"tar": func() source.SnapshotWriter { return source.NewTarWriter(io.Discard, "kpr") },
		"folder": func() source.SnapshotWriter {
			w, err := source.NewDirWriter(filepath.Join(t.TempDir(), "new"))
			if err != nil {
				t.Fatal(err)
			}
			return w
		},
	}
	for kind, open := range open {
		for _, name := range []string{"../x", "a/../../x", "/x", `a\b`, "./x", "a//b", "", ".", "twice", "file/x", "folder"} {
			w := open()
			for _, fine := range []string{"twice", "file", "folder/x"} {
				if err := w.Add(fine, []byte("x"), time.Time{}); err != nil {
					t.Fatalf("%s: %q: %v", kind, fine, err)
				}
			}
			if err := w.Add(name, nil, read); err == nil {
				t.Errorf("%s: %q is written", kind, name)
			}
			if err := w.Add("another", nil, read); err == nil {
				t.Errorf("%s: after an error more is written", kind)
			}
			if err := w.Close(); err == nil {
				t.Errorf("%s: Close forgets the error for %q", kind, name)
			}
		}
	}
}

func TestDirWriter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "new")
	w, err := source.NewDirWriter(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add("nodes/n1/ss.txt", []byte("x"), read); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "nodes", "n1", "ss.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode())
	}
	if !info.ModTime().Truncate(time.Second).Equal(read.Truncate(time.Second)) {
		t.Errorf("time %v, want %v", info.ModTime(), read)
	}
	if _, err := source.NewDirWriter(dir); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a folder that is not empty: %v, want %v", err, fs.ErrExist)
	}
}

func TestCreateFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kpr.tar.gz")
	begin := func() *source.NewFile {
		t.Helper()
		f, err := source.CreateFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte("half")); err != nil {
			t.Fatal(err)
		}
		return f
	}
	left := func() (names []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}

	f := begin()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a file has the final name (%v)", err)
	}
	if err := f.Close(); err != nil || len(left()) != 0 {
		t.Errorf("dropped: %v, left %q", err, left())
	}
	if err := f.Commit(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Commit after Close: %v", err)
	}

	f, other := begin(), begin()
	if err := errors.Join(f.Commit(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := other.Commit(); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Commit onto a file: %v, want %v", err, fs.ErrExist)
	}
	if data, err := os.ReadFile(path); string(data) != "mine" || len(left()) != 1 {
		t.Errorf("after it: %q, %v, left %q", data, err, left())
	}
	if _, err := source.CreateFile(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("CreateFile of a file that is there: %v, want %v", err, fs.ErrExist)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600", info.Mode(), err)
	}
	if _, err := source.CreateFile(filepath.Join(dir, "none", "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("CreateFile in no folder: %v, want %v", err, fs.ErrNotExist)
	}
}

func TestSnapshotName(t *testing.T) {
	at := time.Date(2025, 6, 7, 10, 9, 10, 0, time.FixedZone("", 2*3600))
	for context, want := range map[string]string{
		"prod":             "kpr-prod-20250607-080910",
		"":                 "kpr-cluster-20250607-080910",
		"admin@kubernetes": "kpr-admin-kubernetes-20250607-080910",
		"../..":            "kpr-cluster-20250607-080910",
		"arn:aws:eks:eu-central-1:123456789012:cluster/web": "kpr-arn-aws-eks-eu-central-1-123456789012-cluster-web-20250607-080910",
		strings.Repeat("x", 150) + "-end":                   "kpr-" + strings.Repeat("x", 96) + "-end-20250607-080910",
	} {
		if got := source.SnapshotName(context, at); got != want {
			t.Errorf("SnapshotName(%q) = %s, want %s", context, got, want)
		}
	}
}
