package plan

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxLine is more than the longest entry: what a step captures goes into an
// object of the cluster too.
const maxLine = 2 << 20

// File is a journal in a file, an entry a line as JSON. Each entry is on the
// disk when Append returns. A last line that a crash has cut is not there.
type File struct {
	name string
	size int64 // of the whole lines that were read or written
	next int
}

// NewFile is the journal in the file of that name, which may not exist yet.
func NewFile(name string) *File { return &File{name: name} }

// Append is part of Journal. Entries must have been called before.
func (f *File) Append(_ context.Context, e Entry) (err error) {
	if err := inOrder(e, f.next); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("%s: entry %d: %w", f.name, e.Seq, err)
	}
	file, err := os.OpenFile(f.name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := f.trim(file); err != nil {
		return err
	}
	if _, err := file.WriteAt(append(line, '\n'), f.size); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	f.size += int64(len(line)) + 1
	f.next++
	return nil
}

// trim cuts off what a crash has left of a line. A whole line there is
// somebody else's.
func (f *File) trim(file *os.File) error {
	rest, err := io.ReadAll(io.NewSectionReader(file, f.size, maxLine))
	if err != nil {
		return err
	}
	if bytes.IndexByte(rest, '\n') >= 0 {
		return fmt.Errorf("%s: %w", f.name, ErrConflict)
	}
	return file.Truncate(f.size)
}

// Entries is part of Journal.
func (f *File) Entries(context.Context) ([]Entry, error) {
	f.size, f.next = 0, 0
	file, err := os.Open(f.name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	var out []Entry
	r := bufio.NewReader(io.LimitReader(file, 1<<30))
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return out, nil // without its end the line was never written
		}
		if err != nil {
			return nil, err
		}
		e, err := Decode(line, len(out))
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: not an entry of a journal (%w); name another file", f.name, n, err)
		}
		out = append(out, e)
		f.size += int64(len(line))
		f.next++
	}
}

// Decode reads one line of a journal, whose number it must have.
func Decode(line []byte, seq int) (Entry, error) {
	var e Entry
	switch err := json.Unmarshal(line, &e); {
	case err != nil:
		return e, err
	case e.Seq != seq:
		return e, fmt.Errorf("its number is %d where %d is next", e.Seq, seq)
	case e.Event == "":
		return e, errors.New("it tells of no event")
	}
	return e, nil
}
