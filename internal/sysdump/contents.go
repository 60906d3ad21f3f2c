package sysdump

import (
	"context"
	"path"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// contents is an archive together with the small files that are needed to find
// one's way in it. Those are read in one pass: a compressed tar can only be
// read from its beginning.
type contents struct {
	*source.Archive
	early map[string][]byte
}

// maxEarly bounds one file that is read before anybody asks for it.
const maxEarly = 128 << 20

// prepare reads the named members, and of each folder of a node what tells
// which node it is and whether its agent answered.
func (c *contents) prepare(members []string, folders []folder) {
	want := members
	for _, f := range folders {
		for _, m := range c.Members() {
			name, inside := strings.CutPrefix(m.Name, path.Join(f.dir, "cmd")+"/")
			if f.packed && m.Name == f.dir || inside && tells(name) {
				want = append(want, m.Name)
			}
		}
	}
	c.early = map[string][]byte{}
	var there []string
	for _, name := range want {
		if size, ok := c.Size(name); ok && size <= maxEarly {
			there = append(there, name)
		}
	}
	c.Read(context.Background(), there, func(name string, data []byte, err error) {
		if err == nil {
			c.early[name] = data
		}
	})
}

// tells holds for outputs that are needed to know the node.
func tells(name string) bool {
	switch name {
	case "hostname.md", "ip-a.md":
		return true
	}
	for _, prefix := range prefixes {
		if name == prefix+"node-list--o-json.md" || name == prefix+"status---verbose.md" {
			return true
		}
	}
	return false
}

// one is a whole file, nil if it is not there or too large.
func (c *contents) one(member string) (data []byte) {
	if data, ok := c.early[member]; ok {
		return data
	}
	if size, ok := c.Size(member); !ok || size > maxAnswer {
		return nil
	}
	c.Read(context.Background(), []string{member}, func(_ string, d []byte, err error) {
		if err == nil {
			data = d
		}
	})
	return data
}

// first is the first member whose name begins so, of JSON by its extension.
func (c *contents) first(beginning string, format source.Format) string {
	for _, m := range c.Members() {
		if strings.HasPrefix(m.Name, beginning) && (format == source.JSON) == strings.HasSuffix(m.Name, ".json") {
			return m.Name
		}
	}
	return ""
}
