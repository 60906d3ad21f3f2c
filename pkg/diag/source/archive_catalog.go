package source

import (
	"fmt"
	"path"
	"strings"
)

// catalog collects the names of an archive and refuses what is not safe. It
// is bounded by the Limits however the archive is made: folders that only
// names imply count as entries.
type catalog struct {
	lim     Limits
	members []Member
	files   map[string]int64
	folders map[string]bool
	total   int64
}

func newCatalog(lim Limits) *catalog {
	return &catalog{lim: lim, files: map[string]int64{}, folders: map[string]bool{}}
}

// file notes a member and returns its clean name.
func (c *catalog) file(raw string, size int64) (string, error) {
	name, err := c.clean(raw)
	if err != nil {
		return "", err
	}
	_, twice := c.files[name]
	switch {
	case name == ".":
		return "", refused(raw, "a file without a name")
	case twice:
		return "", refused(raw, "the name is there twice")
	case c.folders[name]:
		return "", refused(raw, "a folder of that name is there too")
	case size < 0 || size > c.lim.Member:
		return "", refused(raw, "%d bytes, the limit for one file is %d", size, c.lim.Member)
	case size > c.lim.Total-c.total:
		return "", refused(raw, "the files up to here have more than %d bytes", c.lim.Total)
	}
	c.total += size
	c.files[name] = size
	c.members = append(c.members, Member{name, size})
	return name, c.parents(raw, name)
}

// folder notes a folder. A folder may be told twice, that does no harm.
func (c *catalog) folder(raw string) error {
	name, err := c.clean(raw)
	if err != nil || name == "." {
		return err
	}
	return c.parents(raw, name+"/.")
}

// parents notes the folders above a name.
func (c *catalog) parents(raw, name string) error {
	for dir := path.Dir(name); dir != "." && !c.folders[dir]; dir = path.Dir(dir) {
		if _, ok := c.files[dir]; ok {
			return refused(raw, "%q is a file and a folder", dir)
		}
		c.folders[dir] = true
	}
	if len(c.files)+len(c.folders) > c.lim.Entries {
		return refused(raw, "more than %d files and folders", c.lim.Entries)
	}
	return nil
}

// clean is a name without "./" and the like. Names are refused that any system
// might take for a place outside: Windows reads backslashes and drives.
func (c *catalog) clean(raw string) (string, error) {
	switch {
	case len(raw) > c.lim.Name:
		return "", refused(raw[:c.lim.Name], "a name of %d bytes, the limit is %d", len(raw), c.lim.Name)
	case strings.HasPrefix(raw, "/"):
		return "", refused(raw, "an absolute name")
	case len(raw) > 1 && raw[1] == ':' && (raw[0]|0x20) >= 'a' && (raw[0]|0x20) <= 'z':
		return "", refused(raw, "a name with a drive")
	case strings.ContainsAny(raw, "\\\x00"):
		return "", refused(raw, "a name with a backslash or a NUL")
	}
	for part := range strings.SplitSeq(raw, "/") {
		if part == ".." {
			return "", refused(raw, "a name with ..")
		}
	}
	return path.Clean(raw), nil
}

func refused(name, why string, args ...any) error {
	if len(name) > 200 {
		name = name[:200] + "…"
	}
	return fmt.Errorf("member %q: %w: %s", name, ErrUnsafe, fmt.Sprintf(why, args...))
}
