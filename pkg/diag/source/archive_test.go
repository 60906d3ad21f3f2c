package source_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// entry is a member of an archive that nobody should make.
type entry struct {
	name string
	kind byte // of tar
	data string
}

func hostileTar(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range append([]entry{{"services.yaml", tar.TypeReg, "x"}}, entries...) {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Size: int64(len(e.data)), Mode: 0o644}
		if e.kind == tar.TypeLink || e.kind == tar.TypeSymlink {
			h.Linkname = "services.yaml"
		}
		addTar(t, w, h, e.data)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func hostileZip(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range append([]entry{{"services.yaml", tar.TypeReg, "x"}}, entries...) {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		switch e.kind {
		case tar.TypeSymlink:
			h.SetMode(fs.ModeSymlink | 0o777)
		case tar.TypeChar:
			h.SetMode(fs.ModeDevice | fs.ModeCharDevice | 0o666)
		case tar.TypeFifo:
			h.SetMode(fs.ModeNamedPipe | 0o666)
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(e.data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestHostile(t *testing.T) {
	small := source.Limits{Entries: 4, Member: 1 << 20, Total: 3 << 19, Ratio: 100, Free: 1000, Name: 60}
	zeros := strings.Repeat("\x00", 500_000)
	noise := strings.Repeat("0123456789abcdef", 1000) // packs by less than 100
	reg := func(names ...string) (all []entry) {
		for _, name := range names {
			all = append(all, entry{name, tar.TypeReg, ""})
		}
		return all
	}
	tests := map[string]struct {
		entries []entry
		want    string // in the error, "" where the archive is fine
		onlyTar bool
	}{
		"fine":              {entries: reg("./a", "b//c")},
		"small and dense":   {entries: []entry{{"a", tar.TypeReg, zeros[:900]}}},
		"noise":             {entries: []entry{{"a", tar.TypeReg, noise}}},
		"folder twice":      {entries: []entry{{"a/", tar.TypeDir, ""}, {"./a/", tar.TypeDir, ""}, {"a/b", tar.TypeReg, ""}}},
		"absolute":          {entries: reg("/etc/passwd"), want: `"/etc/passwd": refused: an absolute name`},
		"up":                {entries: reg("../x"), want: `"../x": refused: a name with ..`},
		"up within":         {entries: reg("a/../b"), want: `"a/../b": refused`},
		"up at the end":     {entries: reg("a/.."), want: `"a/.."`},
		"backslash":         {entries: reg(`a\b`), want: "a backslash"},
		"drive":             {entries: reg("C:x"), want: `"C:x": refused: a name with a drive`},
		"twice":             {entries: reg("a", "./a"), want: `"./a": refused: the name is there twice`},
		"file, then folder": {entries: reg("a", "a/b"), want: `"a" is a file and a folder`},
		"folder, then file": {entries: reg("a/b", "a"), want: `"a": refused: a folder of that name`},
		"long name":         {entries: reg(strings.Repeat("x", 61)), want: "a name of 61 bytes"},
		"no name":           {entries: reg("."), want: "without a name"},
		"many":              {entries: reg("a", "b", "c", "d"), want: `"d": refused: more than 4`},
		"deep":              {entries: reg("a/b/c/d"), want: `"a/b/c/d": refused: more than 4`},
		"hard link":         {entries: []entry{{"a", tar.TypeLink, ""}}, want: `"a": refused: not a plain file`, onlyTar: true},
		"symlink":           {entries: []entry{{"a", tar.TypeSymlink, ""}}, want: `"a": refused: not a plain file`},
		"device":            {entries: []entry{{"a", tar.TypeChar, ""}}, want: `"a": refused: not a plain file`},
		"pipe":              {entries: []entry{{"a", tar.TypeFifo, ""}}, want: `"a": refused: not a plain file`},
		"large":             {entries: []entry{{"a", tar.TypeReg, strings.Repeat(noise, 66)}}, want: `"a": refused: 1056000 bytes`},
		"large together": {
			entries: []entry{{"a", tar.TypeReg, strings.Repeat(noise, 50)}, {"b", tar.TypeReg, strings.Repeat(noise, 50)}},
			want:    `"b": refused: the files up to here`,
		},
		"dense": {entries: []entry{{"a", tar.TypeReg, zeros}}, want: "times its size"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			plain := hostileTar(t, tc.entries...)
			kinds := map[string][]byte{"tar": plain, "tar.gz": packGzip(t, plain)}
			if !tc.onlyTar {
				kinds["zip"] = hostileZip(t, tc.entries...)
			}
			for kind, data := range kinds {
				if kind == "tar" && (name == "dense" || name == "large together") {
					continue // nothing is packed there, and the file itself is too large
				}
				lim := small
				if strings.HasPrefix(name, "large") || name == "noise" {
					lim.Ratio = 1e6 // noise packs well, too
				}
				s, err := source.OpenSnapshotWithin(keepFile(t, data), lim)
				switch {
				case tc.want == "" && err != nil:
					t.Errorf("%s: %v, want none", kind, err)
				case tc.want != "" && (!errors.Is(err, source.ErrUnsafe) || !strings.Contains(err.Error(), tc.want)):
					t.Errorf("%s: error %v, want one with %q", kind, err, tc.want)
				}
				if err == nil {
					s.Close()
				}
			}
		})
	}
}

// The sizes in a zip's directory are claims.
func TestZipLies(t *testing.T) {
	honest := packZip(t, map[string]string{"services.yaml": strings.Repeat("kind: List\n", 200)})
	at := bytes.Index(honest, []byte("PK\x01\x02"))
	lie := func(change func(dir []byte)) []byte {
		data := bytes.Clone(honest)
		change(data[at:])
		return data
	}
	put := func(b []byte, v uint32) { b[0], b[1], b[2], b[3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24) }
	const flags, method, packed, unpacked = 8, 10, 20, 24
	tests := map[string]struct {
		data []byte
		want error
	}{
		"more packed than there is": {lie(func(d []byte) { put(d[packed:], 1<<30) }), source.ErrUnsafe},
		"stored, other size":        {lie(func(d []byte) { d[method] = 0 }), source.ErrUnsafe},
		"encrypted":                 {lie(func(d []byte) { d[flags] |= 1 }), source.ErrUnsafe},
		"unknown method":            {lie(func(d []byte) { d[method] = 93 }), source.ErrUnsafe},
		"said to be longer":         {lie(func(d []byte) { put(d[unpacked:], 5000) }), source.ErrCut},
		"said to be shorter":        {lie(func(d []byte) { put(d[unpacked:], 10) }), source.ErrCut},
		"other checksum":            {lie(func(d []byte) { d[16]++ }), source.ErrCut},
		"said to be huge":           {lie(func(d []byte) { put(d[unpacked:], 1<<31) }), source.ErrUnsafe},
	}
	for name, tc := range tests {
		s, err := source.OpenSnapshot(keepFile(t, tc.data))
		if err == nil {
			if e := s.Collect(t.Context(), []source.Query{{Topic: source.Services}}, func(_ source.Artifact, e error) { err = e }); e != nil {
				t.Errorf("%s: Collect: %v", name, e)
			}
			s.Close()
		}
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: error %v, want %v", name, err, tc.want)
		}
	}
}

func TestZipOfManyEntries(t *testing.T) {
	many := map[string]string{}
	for i := range 3000 {
		many[strings.Repeat("x", 90)+string(rune('a'+i%26))+strings.Repeat("y", i/26)] = ""
	}
	_, err := source.OpenSnapshotWithin(keepFile(t, packZip(t, many)), source.Limits{Entries: 10})
	if !errors.Is(err, source.ErrUnsafe) || !strings.Contains(err.Error(), "more than 10 files") {
		t.Errorf("error %v, want more than 10 files", err)
	}
}

// However an archive is cut, it is never taken for a whole one.
func TestCutArchives(t *testing.T) {
	files := map[string]string{
		"services.yaml":    "kind: List\n",
		"nodes/n1/ss.txt":  strings.Repeat("LISTEN 0 4096\n", 100),
		"nodes/n2/ss.txt":  strings.Repeat("\x00", 1024),
		"nodes/n3/x.txt":   "",
		"nodes/n4/ss.txt":  strings.Repeat("x", 512),
		"snapshot.yaml":    "schema: 1\n",
		"zz-unclaimed.txt": "x",
	}
	tarball := packTar(t, files)
	for kind, data := range map[string][]byte{"tar": tarball, "tar.gz": packGzip(t, tarball), "zip": packZip(t, files)} {
		path := keepFile(t, data)
		for n := len(data); n >= 0; n-- {
			if kind == "tar" && (n%512 > 1 && n%512 < 511 || n > len(data)-512 && n < len(data)) {
				continue // nothing new inside a block, and the last block says nothing
			}
			if err := os.Truncate(path, int64(n)); err != nil {
				t.Fatal(err)
			}
			s, err := source.OpenSnapshot(path)
			if err == nil {
				s.Close()
			}
			whole := n == len(data) || kind == "tar" && n == len(data)-512
			switch {
			case whole && err != nil:
				t.Fatalf("%s, whole: %v", kind, err)
			case !whole && err == nil:
				t.Fatalf("%s cut at %d of %d: opens", kind, n, len(data))
			case !whole && n >= 512 && !errors.Is(err, source.ErrCut):
				t.Fatalf("%s cut at %d of %d: %v, want cut", kind, n, len(data), err)
			}
		}
	}
}

func TestDamagedGzip(t *testing.T) {
	data := packGzip(t, packTar(t, files()))
	data[len(data)-6]++ // in the checksum
	if _, err := source.OpenSnapshot(keepFile(t, data)); !errors.Is(err, source.ErrCut) {
		t.Errorf("error %v, want cut", err)
	}
}

func TestNotAnArchive(t *testing.T) {
	for name, data := range map[string]string{"empty": "", "text": strings.Repeat("words ", 500), "elf": "\x7fELF", "xz": "\xfd7zXZ\x00"} {
		if _, err := source.OpenSnapshot(keepFile(t, []byte(data))); err == nil {
			t.Errorf("%s: opens", name)
		}
	}
	if _, err := source.OpenSnapshot(keepFile(t, packGzip(t, []byte("words")))); !errors.Is(err, source.ErrCut) {
		t.Errorf("gzip of words: %v", err)
	}
	if _, err := source.OpenSnapshot(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v, want %v", err, fs.ErrNotExist)
	}
}

func TestLinksInFolder(t *testing.T) {
	outside := keepFile(t, []byte("secret"))
	tests := map[string]struct {
		link, to string
		want     string
	}{
		"to a file inside": {"services.yaml", "held/services", ""},
		"outside":          {"services.yaml", outside, `"services.yaml": refused: a link`},
		"up":               {"services.yaml", "../x", `"services.yaml": refused: a link`},
		"to nothing":       {"notes.txt", "none", `"notes.txt": refused: a link`},
		"to a folder":      {"nodes/n2", "n1", `"nodes/n2": refused: a link to a folder`},
		"to itself":        {"x", "x", `"x": refused: a link`},
	}
	for name, tc := range tests {
		dir := unpackDir(t, map[string]string{"held/services": "x", "nodes/n1/ss.txt": ""})
		if err := os.Symlink(tc.to, filepath.Join(dir, tc.link)); err != nil {
			t.Skip(err)
		}
		s, err := source.OpenSnapshot(dir)
		if tc.want != "" {
			if !errors.Is(err, source.ErrUnsafe) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want an error with %s", name, err, tc.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		err = s.Collect(t.Context(), []source.Query{{Topic: source.Services}}, func(a source.Artifact, err error) {
			if string(a.Data) != "x" || err != nil {
				t.Errorf("%s: %q, %v", name, a.Data, err)
			}
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		s.Close()
	}
}
