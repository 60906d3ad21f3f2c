package cilium

import (
	"errors"
	"strconv"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
)

// cgroupRoots are where agents have the root of the control groups: the
// chart's default, and what it takes where the mount is left to the host
// (cgroup.autoMount.enabled=false).
var cgroupRoots = []string{"/run/cilium/cgroupv2", "/sys/fs/cgroup"}

// cgroupShow is a bash program that shows the programs on the first of the
// control groups given that bpftool can open, below a line with its path.
const cgroupShow = `for d;do o=$(bpftool cgroup show "$d" 2>&1)&&exec printf '%s\n' "$d" "$o";done;echo "$o">&2;exit 1`

// DecodeCgroup reads `bpftool cgroup tree PATH`, or `show` below a line with
// the path. Of a tree only its first group counts: that is the root.
//
// Gaps are reported as *DecodeErrors together with what could be read.
func DecodeCgroup(data []byte) (agent.Cgroup, error) {
	c, a := cgroup(data)
	return c, a.err()
}

func cgroup(data []byte) (agent.Cgroup, *answer) {
	var c agent.Cgroup
	below := false
	a := newAnswer("bpftool cgroup", data)
	for line, ok := a.next(); ok; line, ok = a.next() {
		f := strings.Fields(line)
		switch {
		case below || f[0] == "CgroupPath" || f[0] == "ID":
			a.noise()
		case strings.HasPrefix(f[0], "/") && c.Path == "":
			c.Path = f[0]
			a.entry()
		case strings.HasPrefix(f[0], "/"):
			below = true
			a.noise()
		default:
			p, err := cgroupProgram(f)
			if err != nil {
				a.fail(err.Error())
				continue
			}
			c.Programs = append(c.Programs, p)
			a.entry()
		}
	}
	return c, a
}

// cgroupProgram reads ID, hook, flags and name; flags can be empty, and the
// name of a program loaded without one.
func cgroupProgram(f []string) (agent.CgroupProgram, error) {
	if _, err := strconv.ParseUint(f[0], 10, 32); err != nil || len(f) < 2 {
		return agent.CgroupProgram{}, errors.New("no program")
	}
	p := agent.CgroupProgram{Hook: hook(f[1])}
	switch rest := f[2:]; {
	case len(rest) == 0:
	case len(rest) == 1 && (rest[0] == "multi" || rest[0] == "override"):
	default:
		p.Name = rest[len(rest)-1]
	}
	return p, nil
}

// hook spells an attach type as bpftool did up to version 6: connect4, not
// cgroup_inet4_connect.
func hook(s string) string {
	for _, family := range []string{"4", "6"} {
		for _, prefix := range []string{"cgroup_inet" + family + "_", "cgroup_udp" + family + "_"} {
			if rest, ok := strings.CutPrefix(s, prefix); ok {
				return rest + family
			}
		}
	}
	return strings.TrimPrefix(strings.TrimPrefix(s, "cgroup_inet_"), "cgroup_")
}
