package cilium

// FlowsArgv is a bash program that prints what a node's two connection trackers
// hold of sockets: Cilium's, in whose own words, then a line "netfilter", then
// those of the kernel's netfilter where the kernel shows them (most do). The
// tables are large, so they are searched there.
//
//	FlowsArgv [IP PORT]...
//
// It ends within 12 seconds, with exit code 0 also where nothing was found.
func FlowsArgv() []string {
	return []string{"timeout", "-k", "2", "12", "bash", "-c", flows, "kpr"}
}

const flows = `export LC_ALL=C
c=cilium-dbg; command -v $c >/dev/null 2>&1 || c=cilium
e=() f=()
while [ $# -ge 2 ]; do
e+=(-e " $1:$2 " -e " [$1]:$2 ")
f+=(-e " sport=$2 ")
shift 2
done
timeout 8 $c bpf ct list global 2>/dev/null | grep -F "${e[@]}" | head -n 400
echo netfilter
grep -hs "${f[@]}" /proc/net/nf_conntrack | head -n 400
exit 0
`

// JudgedArgv prints what the agent of a node drops and what policies decide,
// until it is stopped. Its first line comes as soon as it listens.
func JudgedArgv() []string {
	return []string{"sh", "-c", "c=cilium-dbg; command -v $c >/dev/null 2>&1 || c=cilium; exec $c monitor --type drop --type policy-verdict", "kpr"}
}
