package source

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// tarMembers is a tar file, compressed or not. A tar has no directory, so
// every read is a pass from the start; the first one checks the whole file.
type tarMembers struct {
	file packed
	size int64
	lim  Limits
	gzip bool
	// kept holds the few small members that every snapshot is asked for, so
	// that opening one takes a single pass.
	kept map[string][]byte
	held int64
}

// keepBytes bounds what tarMembers holds in memory.
const keepBytes = 16 << 20

func looksLikeTar(head []byte) bool {
	if len(head) < 512 {
		return false
	}
	if string(head[257:262]) == "ustar" {
		return true
	}
	// Archives from before 1988 have a checksum and no magic.
	_, err := tar.NewReader(bytes.NewReader(head)).Next()
	return err == nil
}

func (t *tarMembers) Close() error { return t.file.Close() }

// unpack is the stream of the tar, metered.
func (t *tarMembers) unpack(ctx context.Context) (*meter, error) {
	in := &counter{r: withContext{ctx, io.NewSectionReader(t.file, 0, t.size)}}
	m := &meter{r: in, in: in, lim: t.lim}
	if t.gzip {
		z, err := gzip.NewReader(bufio.NewReaderSize(in, 1<<16))
		if err != nil {
			return nil, damaged("", err)
		}
		m.r = z
	}
	return m, nil
}

func (t *tarMembers) index(c *catalog) error {
	m, err := t.unpack(context.Background())
	if err != nil {
		return err
	}
	t.kept = map[string][]byte{}
	r, last := tar.NewReader(m), ""
	for {
		before := m.out
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			// A whole tar ends with blocks of zeros. One that was cut between
			// two members ends as quietly, without them.
			if m.out-before < 512 {
				return damaged(last, io.ErrUnexpectedEOF)
			}
			break
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) { // names are judged below
			return damaged(last, err)
		}
		last = h.Name
		if err := t.member(c, h, r); err != nil {
			return err
		}
	}
	// What follows the end is padding; gzip's checksum comes after it.
	if _, err := io.Copy(io.Discard, m); err != nil {
		return damaged(last, err)
	}
	return nil
}

func (t *tarMembers) member(c *catalog, h *tar.Header, r io.Reader) error {
	switch {
	case h.Typeflag == tar.TypeXGlobalHeader: // a comment of the one who packed it
		return nil
	case h.Typeflag == tar.TypeDir:
		return c.folder(h.Name)
	case h.Typeflag != tar.TypeReg || sparse(h):
		return refused(h.Name, "not a plain file")
	}
	name, err := c.file(h.Name, h.Size)
	if err != nil {
		return err
	}
	if keep(name) && h.Size <= keepBytes-t.held {
		t.held += h.Size
		data, err := exactly(r, h.Size)
		if err != nil {
			return damaged(name, err)
		}
		t.kept[name] = data
		return nil
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return damaged(name, err)
	}
	return nil
}

func keep(name string) bool {
	switch path.Base(name) {
	case manifestFile, "nodes.yaml", "nodes.json":
		return true
	}
	return false
}

// sparse files have holes that cost nothing in the archive and much here.
func sparse(h *tar.Header) bool {
	for k := range h.PAXRecords {
		if strings.HasPrefix(k, "GNU.sparse.") {
			return true
		}
	}
	return false
}

func (t *tarMembers) read(ctx context.Context, want map[string]int64, yield func(string, []byte, error)) error {
	for _, name := range slices.Sorted(maps.Keys(t.kept)) {
		if _, ok := want[name]; ok && ctx.Err() == nil {
			delete(want, name)
			yield(name, bytes.Clone(t.kept[name]), nil)
		}
	}
	if len(want) == 0 {
		return nil
	}
	m, err := t.unpack(ctx)
	if err != nil {
		return err
	}
	for r := tar.NewReader(m); len(want) > 0; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return damaged("", err)
		}
		name := path.Clean(h.Name)
		size, ok := want[name]
		if !ok || h.Typeflag != tar.TypeReg || h.Size != size {
			continue
		}
		delete(want, name)
		data, err := exactly(r, size)
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		yield(name, data, err)
	}
	return nil
}

// damaged words an error of the stream, with the last member that was whole.
func damaged(last string, err error) error {
	where := "at its beginning"
	if last != "" {
		where = fmt.Sprintf("in or after member %.200q", last)
	}
	switch {
	case errors.Is(err, ErrUnsafe), stopped(err):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("%w: the archive ends early, %s", ErrCut, where)
	}
	return fmt.Errorf("%w: the archive is damaged %s: %w", ErrCut, where, err)
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// meter stops a stream that grows too large, or too large for what is packed.
// The bytes between members count too: headers without members are endless.
type meter struct {
	r   io.Reader
	in  *counter
	out int64
	lim Limits
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.out += int64(n)
	switch {
	case m.out > m.lim.Total:
		return n, fmt.Errorf("%w: unpacks to more than %d bytes", ErrUnsafe, m.lim.Total)
	case m.out > m.lim.Free && m.out/max(m.in.n, 1) > m.lim.Ratio:
		return n, fmt.Errorf("%w: unpacks to more than %d times its size", ErrUnsafe, m.lim.Ratio)
	}
	return n, err
}
