package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// NewFile is a file that comes into being whole or not at all. It is written
// under a name of its own in the same folder, with mode 0600.
type NewFile struct {
	temp *os.File
	path string
	done bool
}

// CreateFile begins a file. It fails with fs.ErrExist where path is taken.
func CreateFile(path string) (*NewFile, error) {
	if _, err := os.Lstat(path); err == nil {
		return nil, &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".kpr-*.part")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &NewFile{temp: temp, path: path}, nil
}

// Write appends to the file.
func (f *NewFile) Write(p []byte) (int, error) { return f.temp.Write(p) }

// Commit gives the file its name. It fails with fs.ErrExist, and leaves what
// is there alone, if someone else took the name in the meantime.
func (f *NewFile) Commit() error {
	if f.done {
		return fmt.Errorf("%s: %w", f.path, fs.ErrClosed)
	}
	f.done = true
	temp := f.temp.Name()
	if err := errors.Join(f.temp.Sync(), f.temp.Close()); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", f.path, err), os.Remove(temp))
	}
	if err := take(temp, f.path); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", f.path, err), os.Remove(temp))
	}
	// Makes the name last through a power cut. Some systems cannot sync a
	// folder; the file is there all the same.
	if dir, err := os.Open(filepath.Dir(f.path)); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
	return nil
}

// take moves a file to a name that is free. Only a hard link can tell in one
// step that it is; file systems without links get a look and a rename.
func take(from, to string) error {
	err := os.Link(from, to)
	switch {
	case err == nil:
		return os.Remove(from)
	case errors.Is(err, fs.ErrExist):
		return fs.ErrExist
	}
	if _, err := os.Lstat(to); err == nil {
		return fs.ErrExist
	}
	return os.Rename(from, to)
}

// Close drops the file unless it was committed. It is meant to be deferred.
func (f *NewFile) Close() error {
	if f.done {
		return nil
	}
	f.done = true
	return errors.Join(f.temp.Close(), os.Remove(f.temp.Name()))
}
