package source_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Archives as others make them: with the plain libraries, not with the writer
// under test. A name that ends in "/" is a folder.

func packTar(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(files[name])), Mode: 0o644}
		if strings.HasSuffix(name, "/") {
			h.Typeflag, h.Mode = tar.TypeDir, 0o755
		}
		addTar(t, w, h, files[name])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func addTar(t testing.TB, w *tar.Writer, h *tar.Header, data string) {
	t.Helper()
	if err := w.WriteHeader(h); err != nil {
		t.Fatalf("%s: %v", h.Name, err)
	}
	if _, err := w.Write([]byte(data)); err != nil {
		t.Fatalf("%s: %v", h.Name, err)
	}
}

func packGzip(t testing.TB, data []byte) []byte {
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

func packZip(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func unpackDir(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		full := filepath.Join(dir, filepath.FromSlash(name))
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(full, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// keepFile writes data to a file whose name tells nothing of its kind.
func keepFile(t testing.TB, data []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "evidence")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// under puts every file into a folder.
func under(dir string, files map[string]string) map[string]string {
	all := map[string]string{}
	for name, data := range files {
		all[dir+"/"+name] = data
	}
	return all
}

// containers are the same files in every kind of container.
func containers(t testing.TB, files map[string]string) map[string]string {
	t.Helper()
	top := under("kpr-prod", files)
	return map[string]string{
		"folder": unpackDir(t, files),
		"tar":    keepFile(t, packTar(t, files)),
		"tar.gz": keepFile(t, packGzip(t, packTar(t, top))),
		"zip":    keepFile(t, packZip(t, top)),
	}
}
