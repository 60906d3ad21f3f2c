package source

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

type fuzzed struct{ *bytes.Reader }

func (fuzzed) Close() error { return nil }

func seedTar(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []tar.Header{
		{Name: "kpr/", Typeflag: tar.TypeDir},
		{Name: "kpr/services.yaml", Typeflag: tar.TypeReg, Size: 6},
		{Name: "kpr/nodes/n1/" + strings.Repeat("long", 30) + ".txt", Typeflag: tar.TypeReg, Size: 6, Format: tar.FormatPAX},
		{Name: "kpr/nodes/n1/" + strings.Repeat("long", 40) + ".txt", Typeflag: tar.TypeReg, Size: 6, Format: tar.FormatGNU},
		{Name: "kpr/nodes/n1/status.json", Typeflag: tar.TypeReg, Size: 6},
		{Name: "kpr/snapshot.yaml", Typeflag: tar.TypeReg, Size: 6},
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte("a: {}\n")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func seedZip(t testing.TB, method uint16) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range []string{"services.yaml", "nodes/n1/status.json", "nodes/n1/ss.txt", "snapshot.yaml"} {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte("a: {}\n")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// FuzzOpenArchive opens bytes as a snapshot and reads all of it: nothing
// panics, nothing is larger than the limits, and memory stays bounded.
func FuzzOpenArchive(f *testing.F) {
	tarball := seedTar(f)
	f.Add(tarball)
	f.Add(zipped(f, tarball))
	f.Add(zipped(f, make([]byte, 1<<16)))
	f.Add(seedZip(f, zip.Store))
	f.Add(seedZip(f, zip.Deflate))
	f.Add([]byte("PK\x05\x06"))
	lim := Limits{Entries: 50, Member: 1 << 16, Total: 1 << 18, Ratio: 100, Free: 1 << 14, Name: 300}
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		opened(t, data, lim)
		// A gzip'd tar can be fuzzed only from within.
		opened(t, zipped(t, data), lim)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
			t.Errorf("%d bytes took %d bytes of memory", len(data), used)
		}
	})
}

func opened(t *testing.T, data []byte, lim Limits) {
	from, err := sniff(fuzzed{bytes.NewReader(data)}, int64(len(data)), lim)
	if err != nil {
		return
	}
	a, err := indexed("fuzz", from, lim)
	if err != nil {
		return
	}
	var names []string
	var total int64
	for _, m := range a.Members() {
		if strings.HasPrefix(m.Name, "/") || strings.HasPrefix(m.Name, "..") || strings.Contains(m.Name, "/../") || m.Size > lim.Member {
			t.Errorf("member %q of %d bytes is let in", m.Name, m.Size)
		}
		names, total = append(names, m.Name), total+m.Size
	}
	if len(names)+len(a.Folders()) > lim.Entries || total > lim.Total {
		t.Errorf("%d files of %d bytes and %d folders are let in", len(names), total, len(a.Folders()))
	}
	n := 0
	a.Read(t.Context(), names, func(name string, data []byte, err error) {
		n++
		if size, _ := a.Size(name); err == nil && int64(len(data)) != size {
			t.Errorf("%q: %d bytes, want %d", name, len(data), size)
		}
	})
	if n != len(names) {
		t.Errorf("%d answers for %d members", n, len(names))
	}
	s, err := SnapshotIn(a)
	if err != nil {
		return
	}
	s.Unknown()
	qs := []Query{{Topic: Services}, {Topic: Status, Node: "n1"}}
	n = 0
	if err := s.Collect(t.Context(), qs, func(Artifact, error) { n++ }); err != nil || n != len(qs) {
		t.Errorf("%d answers to %d queries, %v", n, len(qs), err)
	}
}

// BenchmarkOpenSnapshot opens and collects a tar.gz of 20 MB, as a cluster of
// a few thousand Services and some dozen nodes gives.
func BenchmarkOpenSnapshot(b *testing.B) {
	path := filepath.Join(b.TempDir(), "kpr.tar.gz")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := NewTarWriter(f, "kpr")
	random := rand.New(rand.NewPCG(1, 2))
	page := make([]byte, 1<<20)
	const hex = "0123456789abcdef"
	for range 40 { // hexadecimal packs to half
		for i := range page {
			page[i] = hex[random.IntN(16)]
		}
		name := "nodes/n" + string(hex[random.IntN(10)]) + "/" + string(page[:20]) + ".txt"
		if err := w.Add(name, page, time.Time{}); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Add("nodes/n1/bpf-lb-list.json", page, time.Time{}); err != nil {
		b.Fatal(err)
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	f.Close()
	b.Run("open", func(b *testing.B) {
		b.SetBytes(info.Size())
		b.ReportAllocs()
		for b.Loop() {
			s, err := OpenSnapshot(path)
			if err != nil {
				b.Fatal(err)
			}
			s.Close()
		}
	})
	b.Run("collect", func(b *testing.B) {
		b.SetBytes(info.Size())
		b.ReportAllocs()
		s, err := OpenSnapshot(path)
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		for b.Loop() {
			err := s.Collect(b.Context(), []Query{{Topic: MapList, Node: "n1"}}, func(a Artifact, err error) {
				if err != nil || len(a.Data) != len(page) {
					b.Fatal(len(a.Data), err)
				}
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}
