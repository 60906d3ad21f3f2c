package source

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// zipMembers is a zip file. Its directory says every size before a byte is
// unpacked; what it says is checked against the file and again when read.
type zipMembers struct {
	file io.Closer
	lim  Limits
	size int64
	all  []*zip.File
	by   map[string]*zip.File
}

// newZip reads the directory at the end of the file. zip.NewReader keeps every
// entry it meets, so what it may read is bounded: 128 bytes for each entry
// allowed are two or three times what an entry takes.
func newZip(f packed, size int64, lim Limits) (*zipMembers, error) {
	directory := &budget{r: f, left: int64(lim.Entries)*128 + 1<<17}
	z, err := zip.NewReader(directory, size)
	switch {
	case directory.left < 0:
		return nil, fmt.Errorf("%w: more than %d files and folders", ErrUnsafe, lim.Entries)
	case err != nil && !errors.Is(err, zip.ErrInsecurePath): // names are judged in index
		return nil, fmt.Errorf("%w: the zip archive has no directory at its end: %w", ErrCut, err)
	}
	directory.open = true
	return &zipMembers{file: f, lim: lim, size: size, all: z.File, by: map[string]*zip.File{}}, nil
}

func (z *zipMembers) Close() error { return z.file.Close() }

func (z *zipMembers) index(c *catalog) error {
	for _, f := range z.all {
		mode := f.Mode()
		if strings.HasSuffix(f.Name, "/") || mode.IsDir() {
			if err := c.folder(f.Name); err != nil {
				return err
			}
			continue
		}
		if err := z.judge(f, mode); err != nil {
			return err
		}
		name, err := c.file(f.Name, int64(min(f.UncompressedSize64, 1<<62)))
		if err != nil {
			return err
		}
		z.by[name] = f
	}
	z.all = nil
	return nil
}

func (z *zipMembers) judge(f *zip.File, mode fs.FileMode) error {
	in, out := f.CompressedSize64, f.UncompressedSize64
	switch {
	case !mode.IsRegular():
		return refused(f.Name, "not a plain file")
	case f.Flags&1 != 0:
		return refused(f.Name, "encrypted")
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return refused(f.Name, "packed by method %d; stored and deflated members can be read", f.Method)
	case in > uint64(z.size):
		return refused(f.Name, "%d packed bytes in an archive of %d", in, z.size)
	case f.Method == zip.Store && in != out:
		return refused(f.Name, "stored in %d bytes and said to have %d", in, out)
	case out > uint64(z.lim.Free) && out/max(in, 1) > uint64(z.lim.Ratio):
		return refused(f.Name, "unpacks to more than %d times its size", z.lim.Ratio)
	}
	return nil
}

func (z *zipMembers) read(ctx context.Context, want map[string]int64, yield func(string, []byte, error)) error {
	return inOrder(ctx, want, z.one, yield)
}

func (z *zipMembers) one(ctx context.Context, name string, size int64) ([]byte, error) {
	r, err := z.by[name].Open()
	if err != nil {
		return nil, cut(err)
	}
	defer r.Close()
	return exactly(withContext{ctx, r}, size)
}

// budget fails once more than left bytes were read, until it is opened.
type budget struct {
	r    io.ReaderAt
	left int64
	open bool
}

var errBudget = errors.New("more bytes than allowed")

func (b *budget) ReadAt(p []byte, off int64) (int, error) {
	if !b.open {
		if b.left -= int64(len(p)); b.left < 0 {
			return 0, errBudget
		}
	}
	return b.r.ReadAt(p, off)
}
