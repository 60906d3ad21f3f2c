package recipe

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// layer is one layer of an image while it is put together: a tar on disk,
// always the same for the same content.
type layer struct {
	files map[string]file // by path without a leading slash
}

type file struct {
	from string // a path on this machine
	link string // or the target of a symbolic link
	data string // or the content
	mode int64
	dir  bool
}

func newLayer() *layer { return &layer{files: map[string]file{}} }

func (l *layer) put(to string, f file) {
	to = strings.TrimPrefix(path.Clean(to), "/")
	if dir := path.Dir(to); dir != "." {
		if _, ok := l.files[dir]; !ok {
			l.put(dir, file{dir: true, mode: 0o755})
		}
	}
	l.files[to] = f
}

// copy takes a file, a link or a folder of this machine. Modules are unpacked
// read-only, so the owner may always write.
func (l *layer) copy(from, to string) error {
	return filepath.WalkDir(from, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		dst := path.Join(to, filepath.ToSlash(rel))
		switch {
		case d.IsDir():
			l.put(dst, file{dir: true, mode: 0o755})
		case info.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(p)
			if err != nil {
				return err
			}
			l.put(dst, file{link: target})
		case info.Mode().IsRegular():
			l.put(dst, file{from: p, mode: int64(info.Mode().Perm() | 0o200)})
		}
		return nil
	})
}

// write makes the tar and returns its SHA-256.
func (l *layer) write(to string) (string, error) {
	out, err := os.Create(to)
	if err != nil {
		return "", err
	}
	defer func() { _ = out.Close() }()
	sum := sha256.New()
	w := tar.NewWriter(io.MultiWriter(out, sum))
	names := make([]string, 0, len(l.files))
	for name := range l.files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := l.files[name].write(w, name); err != nil {
			return "", fmt.Errorf("layer %s: %s: %w", to, name, err)
		}
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), out.Close()
}

func (f file) write(w *tar.Writer, name string) error {
	h := &tar.Header{Name: name, Mode: f.mode, Typeflag: tar.TypeReg, Size: int64(len(f.data))}
	switch {
	case f.dir:
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
		return w.WriteHeader(h)
	case f.link != "":
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, f.link, 0o777
		return w.WriteHeader(h)
	case f.from == "":
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err := io.WriteString(w, f.data)
		return err
	}
	in, err := os.Open(f.from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	h.Size = info.Size()
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(w, in)
	return err
}
