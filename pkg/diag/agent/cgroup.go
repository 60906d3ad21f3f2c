package agent

// Cgroup is what the kernel says is attached to the root of the control groups
// that an agent works on.
type Cgroup struct {
	Path     string // where it is mounted, "" if that was not told
	Programs []CgroupProgram
}

// CgroupProgram is one BPF program on a control group.
type CgroupProgram struct {
	Hook string // connect4, sendmsg6, …: one spelling for all versions of bpftool
	Name string // up to 15 bytes of it are sure to be there
}
