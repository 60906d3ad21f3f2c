package source

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// Archive is a folder, a tar, a tar.gz or a zip file, read by member and never
// unpacked. Its content is untrusted: what breaks a rule of names or one of
// the Limits is refused as a whole, with an error that names the member.
type Archive struct {
	name string
	lim  Limits
	cat  *catalog
	from members
}

// members is one kind of container. Both methods see names as the container
// spells them and hand on clean ones.
type members interface {
	// index gives every member and folder to c.
	index(c *catalog) error
	// read yields each wanted member once and strikes it from want. Where it
	// fails, what is still wanted could not be read.
	read(ctx context.Context, want map[string]int64, yield func(name string, data []byte, err error)) error
	io.Closer
}

// Member is a file in an archive. Name is clean, relative and with slashes.
type Member struct {
	Name string
	Size int64 // bytes, unpacked
}

// Limits bound what an archive may cost. A zero field means its default.
type Limits struct {
	Entries int   // files and folders; default 200 000
	Member  int64 // bytes of one file; default 256 MiB
	Total   int64 // bytes of all files, unpacked; default 2 GiB
	Ratio   int64 // unpacked bytes for each packed one; default 1000
	Free    int64 // bytes for which no ratio is asked; default 1 MiB
	Name    int   // bytes of one name; default 1024
}

// ErrUnsafe is wrapped where an archive holds what is never read: names that
// lead outside, links, devices, duplicates, or more than the Limits allow.
var ErrUnsafe = errors.New("refused")

func (l Limits) orDefaults() Limits {
	return Limits{
		Entries: cmp.Or(l.Entries, 200_000),
		Member:  cmp.Or(l.Member, 256<<20),
		Total:   cmp.Or(l.Total, 2<<30),
		Ratio:   cmp.Or(l.Ratio, 1000),
		Free:    cmp.Or(l.Free, 1<<20),
		Name:    cmp.Or(l.Name, 1024),
	}
}

// OpenArchive opens a folder or an archive; content tells which, not the name.
// It reads a compressed tar once from end to end, so that a cut one is known
// before anything is concluded from it. The error of a cut or damaged archive
// wraps ErrCut, that of a dangerous one ErrUnsafe.
func OpenArchive(path string, lim Limits) (*Archive, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	lim = lim.orDefaults()
	var from members
	switch {
	case info.IsDir():
		root, err := os.OpenRoot(path)
		if err != nil {
			return nil, err
		}
		from = &dirMembers{root: root}
	case info.Mode().IsRegular():
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		if from, err = sniff(f, info.Size(), lim); err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	default:
		return nil, fmt.Errorf("%s: neither a folder nor a file", path)
	}
	return indexed(path, from, lim)
}

// packed is what an archive file is read from.
type packed interface {
	io.ReaderAt
	io.Closer
}

func sniff(f packed, size int64, lim Limits) (members, error) {
	if size > lim.Total {
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", ErrUnsafe, size, lim.Total)
	}
	head := make([]byte, 512)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	head = head[:n]
	switch {
	case n == 0:
		return nil, fmt.Errorf("%w: the file is empty", ErrCut)
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return newZip(f, size, lim)
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return &tarMembers{file: f, size: size, lim: lim, gzip: true}, nil
	case looksLikeTar(head):
		return &tarMembers{file: f, size: size, lim: lim}, nil
	}
	return nil, errors.New("neither a folder nor a tar, tar.gz or zip archive")
}

func indexed(name string, from members, lim Limits) (*Archive, error) {
	a := &Archive{name: name, lim: lim, cat: newCatalog(lim), from: from}
	if err := from.index(a.cat); err != nil {
		_ = from.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	slices.SortFunc(a.cat.members, func(x, y Member) int { return strings.Compare(x.Name, y.Name) })
	return a, nil
}

// Name is the path that the archive was opened by.
func (a *Archive) Name() string { return a.name }

// Members lists the files, sorted by name.
func (a *Archive) Members() []Member { return slices.Clone(a.cat.members) }

// Folders lists the folders, sorted, those included that only members' names
// tell of. The top is not among them.
func (a *Archive) Folders() []string {
	var all []string
	for f := range a.cat.folders {
		all = append(all, f)
	}
	slices.Sort(all)
	return all
}

// Size is the size of a member; false where there is none of that name.
func (a *Archive) Size(name string) (int64, bool) {
	size, ok := a.cat.files[name]
	return size, ok
}

// Read yields each named member once, in the archive's own order. The error
// given to yield wraps ErrCut, fs.ErrNotExist, fs.ErrPermission or the context's
// error.
func (a *Archive) Read(ctx context.Context, names []string, yield func(name string, data []byte, err error)) {
	want := make(map[string]int64, len(names))
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if size, ok := a.cat.files[name]; ok {
			want[name] = size
		} else {
			yield(name, nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist))
		}
	}
	err := a.from.read(ctx, want, yield)
	if err == nil {
		err = fmt.Errorf("%w: the archive changed while it was read", ErrCut)
	}
	left := make([]string, 0, len(want))
	for name := range want {
		left = append(left, name)
	}
	slices.Sort(left)
	for _, name := range left {
		yield(name, nil, fmt.Errorf("%s: %w", name, err))
	}
}

// Close lets go of the file. Nothing can be read after it.
func (a *Archive) Close() error { return a.from.Close() }

// inOrder reads the wanted members by name, for archives that can be read at
// any place, and takes from want what was answered.
func inOrder(ctx context.Context, want map[string]int64, one func(context.Context, string, int64) ([]byte, error), yield func(string, []byte, error)) error {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		size := want[name]
		delete(want, name)
		data, err := one(ctx, name, size)
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		yield(name, data, err)
	}
	return nil
}

// exactly reads a member of a known size.
func exactly(r io.Reader, size int64) ([]byte, error) {
	data := make([]byte, size)
	if n, err := io.ReadFull(r, data); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return data[:n], cut(err)
	}
	// The one read more is what makes a zip reader compare the checksum.
	switch n, err := r.Read(make([]byte, 1)); {
	case n > 0:
		return data, fmt.Errorf("%w: longer than the %d bytes it is said to have", ErrCut, size)
	case err != nil && !errors.Is(err, io.EOF):
		return data, cut(err)
	}
	return data, nil
}

// cut says that what was read is not whole, unless it was we who stopped.
func cut(err error) error {
	if stopped(err) || errors.Is(err, ErrUnsafe) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrCut, err)
}

func stopped(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// withContext makes reads fail once the context has ended.
type withContext struct {
	ctx context.Context
	r   io.Reader
}

func (c withContext) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// ArchiveOf is an archive that lies in memory, such as one inside another. It
// has the limits of one that is opened by its path.
func ArchiveOf(name string, data []byte, lim Limits) (*Archive, error) {
	lim = lim.orDefaults()
	from, err := sniff(inMemory{bytes.NewReader(data)}, int64(len(data)), lim)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return indexed(name, from, lim)
}

type inMemory struct{ io.ReaderAt }

// Close does nothing: memory needs no closing.
func (inMemory) Close() error { return nil }
