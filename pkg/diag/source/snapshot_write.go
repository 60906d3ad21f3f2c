package source

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
)

// SnapshotWriter takes the files of a snapshot as they come.
type SnapshotWriter interface {
	// Add writes one file. The path is relative, clean and new; t is when its
	// content was read.
	Add(path string, data []byte, t time.Time) error
	// Close ends the snapshot. After an error of Add it fails too.
	Close() error
}

// NewTarWriter writes a snapshot as tar.gz with one top folder of the given
// name. Its bytes depend on nothing but what is added, and in which order.
// Close does not close w.
func NewTarWriter(w io.Writer, name string) SnapshotWriter {
	z := gzip.NewWriter(w)
	return &tarWriter{gzip: z, tar: tar.NewWriter(z), top: name, known: newCatalog(Limits{}.orDefaults())}
}

type tarWriter struct {
	gzip  *gzip.Writer
	tar   *tar.Writer
	top   string
	known *catalog
	err   error
}

func (t *tarWriter) Add(name string, data []byte, at time.Time) error {
	if t.err == nil {
		t.err = t.add(name, data, at)
	}
	return t.err
}

func (t *tarWriter) add(name string, data []byte, at time.Time) error {
	full := t.top + "/" + name
	if err := t.known.add(full, data); err != nil {
		return err
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: full, Size: int64(len(data)), Mode: 0o644}
	if !at.IsZero() {
		h.ModTime = at.UTC().Truncate(time.Second)
	}
	if err := t.tar.WriteHeader(h); err != nil {
		return fmt.Errorf("%s: %w", full, err)
	}
	if _, err := t.tar.Write(data); err != nil {
		return fmt.Errorf("%s: %w", full, err)
	}
	return nil
}

func (t *tarWriter) Close() error {
	if t.err != nil {
		return t.err
	}
	t.err = errors.Join(t.tar.Close(), t.gzip.Close())
	return t.err
}

// NewDirWriter writes a snapshot into a folder that does not exist yet or is
// empty. Files are for their owner's eyes only. A recording that was broken
// off leaves a folder without snapshot.yaml.
func NewDirWriter(path string) (SnapshotWriter, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("%s: %w and is not empty", path, fs.ErrExist)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &dirWriter{root: root, known: newCatalog(Limits{}.orDefaults())}, nil
}

type dirWriter struct {
	root  *os.Root
	known *catalog
	err   error
}

func (d *dirWriter) Add(name string, data []byte, at time.Time) error {
	if d.err == nil {
		d.err = d.add(name, data, at)
	}
	return d.err
}

func (d *dirWriter) add(name string, data []byte, at time.Time) error {
	if err := d.known.add(name, data); err != nil {
		return err
	}
	if err := d.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, d.root.Remove(name))
	}
	if at.IsZero() {
		return nil
	}
	return d.root.Chtimes(name, at, at)
}

func (d *dirWriter) Close() error { return errors.Join(d.err, d.root.Close()) }

// add notes a file that is written. What a reader would refuse is not written.
func (c *catalog) add(name string, data []byte) error {
	clean, err := c.file(name, int64(len(data)))
	if err == nil && clean != name {
		err = refused(name, "not a clean name, %q would be", clean)
	}
	return err
}

// SnapshotName is the name of a snapshot without an extension, such as
// kpr-prod-20250102-150405. A context that is an ARN or a URL is shortened to
// what every file system takes.
func SnapshotName(context string, t time.Time) string {
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, context)
	if plain = strings.Trim(plain, ".-"); len(plain) > 100 {
		plain = strings.Trim(plain[len(plain)-100:], ".-") // the end of an ARN is what tells clusters apart
	}
	if plain == "" {
		plain = "cluster"
	}
	return "kpr-" + plain + "-" + t.UTC().Format("20060102-150405")
}
