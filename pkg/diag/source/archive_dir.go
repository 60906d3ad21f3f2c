package source

import (
	"context"
	"io/fs"
	"os"
)

// dirMembers is a folder on disk. os.Root keeps every name and link inside it.
type dirMembers struct{ root *os.Root }

func (d *dirMembers) Close() error { return d.root.Close() }

func (d *dirMembers) index(c *catalog) error {
	return fs.WalkDir(d.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			return c.folder(name)
		}
		// Stat follows a link as long as it stays inside the root.
		info, err := d.root.Stat(name)
		link := e.Type()&fs.ModeSymlink != 0
		switch {
		case link && err != nil:
			return refused(name, "a link that cannot be followed inside the folder: %v", err)
		case err != nil:
			return err
		case link && info.IsDir():
			return refused(name, "a link to a folder")
		case !info.Mode().IsRegular():
			return refused(name, "not a plain file")
		}
		_, err = c.file(name, info.Size())
		return err
	})
}

func (d *dirMembers) read(ctx context.Context, want map[string]int64, yield func(string, []byte, error)) error {
	return inOrder(ctx, want, d.one, yield)
}

// one reads a file that had the given size when the folder was opened. A file
// that changed since is not the evidence that was counted against the limits.
func (d *dirMembers) one(ctx context.Context, name string, size int64) ([]byte, error) {
	f, err := d.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return exactly(withContext{ctx, f}, size)
}
