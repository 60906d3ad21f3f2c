package sysdump

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// ErrNotSysdump is wrapped where a folder or archive is sound but holds no
// cilium sysdump.
var ErrNotSysdump = errors.New("no cilium sysdump in it")

// The names by which a dump is recognised.
var (
	// stamp is the collector's clock, the same in every name of one dump.
	stamp = regexp.MustCompile(`-([0-9]{8}-[0-9]{6})(?:-prev)?\.(?:yaml|txt|log)$`)
	// folderName is the folder of one agent pod.
	folderName = regexp.MustCompile(`^cilium-bugtool-(.+)-([0-9]{8}-[0-9]{6})$`)
	// packedFolder is such a folder that the collector could not unpack.
	packedFolder = regexp.MustCompile(`^cilium-bugtool-(.+)-([0-9]{8}-[0-9]{6})\.tar(?:\.gz)?$`)
	// alone is the folder that cilium-bugtool itself makes.
	alone = regexp.MustCompile(`^cilium-bugtool-[0-9]{8}-[0-9]{6}[.0-9]*[+-][0-9]{4}-[A-Za-z0-9+-]+-[0-9]+$`)
)

const stampForm = "20060102-150405"

// layout is where the parts of a dump lie in its archive.
type layout struct {
	root    string // folder of the dump, "." for the top
	stamp   string // "20261201-010203", "" for the archive of one node
	folders []folder
}

// folder is what was collected through one agent pod.
type folder struct {
	dir    string // in the archive; the member itself where it is still packed
	pod    string // "" for the archive of one node
	packed bool
}

// recorded is the collector's clock, zero if no name tells it.
func (l layout) recorded() time.Time {
	t, err := time.Parse(stampForm, l.stamp)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// file is the path of a file at the top of the dump.
func (l layout) file(stem, ext string) string {
	return path.Join(l.root, stem+"-"+l.stamp+ext)
}

// findLayout looks for the top of a dump by content: people rename archives
// and pack folders again.
func findLayout(a *source.Archive) (layout, error) {
	roots := map[string]int{} // folder to how sure it is
	for _, m := range a.Members() {
		dir, base := path.Split(m.Name)
		dir = path.Clean(dir)
		switch {
		case base == "cilium-sysdump.log":
			roots[dir] = 3
		case strings.HasPrefix(base, "k8s-services-") && stamp.MatchString(base), strings.HasPrefix(base, "k8s-nodes-") && stamp.MatchString(base):
			roots[dir] = max(roots[dir], 2)
		case packedFolder.MatchString(base):
			roots[dir] = max(roots[dir], 1)
		case strings.HasPrefix(base, "k8s-version-info-"), strings.HasPrefix(base, "cilium-ds-"), strings.HasPrefix(base, "cnp-") && stamp.MatchString(base):
			roots[dir] = max(roots[dir], -1)
		}
	}
	for _, f := range a.Folders() {
		if folderName.MatchString(path.Base(f)) {
			roots[path.Dir(f)] = max(roots[path.Dir(f)], 1)
		}
	}
	root, sure := surest(roots)
	switch {
	case sure > 0:
		return layoutAt(a, root)
	case sure < 0:
		return layout{}, fmt.Errorf("%w: the layout of the Python collector of 2021 and before is not supported; collect anew with `cilium sysdump`", ErrNotSysdump)
	}
	return oneNode(a)
}

// surest is the folder with the best sign, of equal ones the shallowest.
func surest(roots map[string]int) (root string, sure int) {
	names := make([]string, 0, len(roots))
	for name := range roots {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int {
		return cmp.Or(cmp.Compare(roots[y], roots[x]), cmp.Compare(strings.Count(x, "/"), strings.Count(y, "/")), cmp.Compare(x, y))
	})
	if len(names) == 0 {
		return "", 0
	}
	return names[0], roots[names[0]]
}

func layoutAt(a *source.Archive, root string) (layout, error) {
	l := layout{root: root}
	seen := map[string]int{}
	for _, m := range a.Members() {
		dir, base := path.Split(m.Name)
		if path.Clean(dir) != root {
			continue
		}
		if s := stamp.FindStringSubmatch(base); s != nil {
			seen[s[1]]++
		}
		if s := packedFolder.FindStringSubmatch(base); s != nil {
			seen[s[2]]++
			l.folders = append(l.folders, folder{dir: m.Name, pod: s[1], packed: true})
		}
	}
	for _, f := range a.Folders() {
		if s := folderName.FindStringSubmatch(path.Base(f)); s != nil && path.Dir(f) == root {
			seen[s[2]]++
			// A folder that is there stands before its packed form.
			l.folders = slices.DeleteFunc(l.folders, func(x folder) bool { return x.packed && x.pod == s[1] })
			l.folders = append(l.folders, folder{dir: f, pod: s[1]})
		}
	}
	for s, n := range seen {
		if best := seen[l.stamp]; n > best || n == best && s < l.stamp {
			l.stamp = s
		}
	}
	if l.stamp == "" {
		return l, fmt.Errorf("%w: no name in %q tells the time of collection", ErrNotSysdump, root)
	}
	slices.SortFunc(l.folders, func(x, y folder) int { return cmp.Compare(x.dir, y.dir) })
	return l, nil
}

// oneNode is the layout of a cilium-bugtool archive: one folder, one node, and
// no objects of the cluster.
func oneNode(a *source.Archive) (layout, error) {
	var dirs []string
	for _, f := range a.Folders() {
		if path.Base(f) != "cmd" {
			continue
		}
		if dir := path.Dir(f); alone.MatchString(path.Base(dir)) || hasCommands(a, f) {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 {
		return layout{}, ErrNotSysdump
	}
	slices.SortFunc(dirs, func(x, y string) int {
		return cmp.Or(cmp.Compare(strings.Count(x, "/"), strings.Count(y, "/")), cmp.Compare(x, y))
	})
	if len(dirs) > 1 {
		return layout{}, fmt.Errorf("%w: several archives of cilium-bugtool in one, %q and %q among them; give one", ErrNotSysdump, dirs[0], dirs[1])
	}
	return layout{root: path.Dir(dirs[0]), folders: []folder{{dir: dirs[0]}}}, nil
}

// hasCommands holds where a folder has the output of an agent's commands.
func hasCommands(a *source.Archive, cmd string) bool {
	for _, prefix := range prefixes {
		if _, ok := a.Size(path.Join(cmd, prefix+"status---verbose.md")); ok {
			return true
		}
	}
	return false
}
