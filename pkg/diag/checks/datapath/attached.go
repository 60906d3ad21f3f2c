package datapath

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// cgroupRoot is where agents have the root of the control groups unless
// cilium-config says otherwise.
const cgroupRoot = "/run/cilium/cgroupv2"

// attached compares what an agent says of its socket LB with the programs that
// the kernel has. The agent attaches them when it starts and does not look
// again.
func attached(p *diag.Pass, st *agent.Status) {
	group, err := fact.Cgroup.From(p.View())
	config, _ := fact.CiliumConfig.From(p.View())
	root := strings.TrimRight(cmp.Or(config["cgroup-root"], cgroupRoot), "/")
	switch {
	case errors.Is(err, source.ErrAbsent) || err != nil && group.Path == "":
		p.Note("not looked at: whether socket LB's programs are attached in the kernel")
		return
	case group.Path != "" && group.Path != root:
		p.Note("not looked at: whether socket LB's programs are attached in the kernel; the agents use %s", root)
		return
	}
	missing := missingHooks(group, wantedHooks(st, config))
	if len(missing) == 0 {
		if err != nil {
			p.Unknown(fact.Cgroup.ID(), err)
		}
		return
	}
	r := diag.Report{Subject: "node/" + p.Node(), Address: "detached", Severity: diag.Error, Proof: []fact.Named{fact.Cgroup, fact.Status}}
	what := strings.Join(missing, ", ")
	consequence := "connections to a ClusterIP from pods and from the node's own processes are translated by nobody"
	if st.SocketLBHostOnly == agent.On {
		consequence = "connections to a ClusterIP from the node's own processes are translated by nobody"
	}
	switch {
	case !slices.ContainsFunc(missing, func(h string) bool { return strings.HasPrefix(h, "connect") }):
		consequence = "UDP to a Service, DNS too, is not translated, or its answers come from the wrong address"
	case len(ours(group)) == 0:
		what = "none of its programs"
	}
	if what != "none of its programs" {
		r.Message = fmt.Sprintf("the agent says socket LB is on, and the kernel has no program of it on %s for %s: %s", root, what, consequence)
	} else {
		r.Message = fmt.Sprintf("the agent says socket LB is on, and the kernel has %s on %s: %s", what, root, consequence)
	}
	r.Message += ". A restart of the agent attaches them again"
	if agentOf, err := fact.AgentOf.From(p.View()); err == nil {
		if namespace, name, ok := agentOf.PodName(); ok {
			r.Next = []string{"kubectl", "-n", namespace, "delete", "pod", name}
		}
	}
	p.Find(socketLB, r)
}

// wantedHooks are those that every version attaches where socket LB is on. What
// depends on more settings (post_bind, getpeername, sock_release) is left out.
func wantedHooks(st *agent.Status, config map[string]string) []string {
	hooks := []string{"connect", "sendmsg", "recvmsg"}
	if len(st.SocketLBProtos) > 0 && !slices.Contains(st.SocketLBProtos, "UDP") {
		hooks = hooks[:1]
	}
	var out []string
	for _, family := range []struct{ digit, key string }{{"4", "enable-ipv4"}, {"6", "enable-ipv6"}} {
		if config[family.key] == "true" {
			for _, h := range hooks {
				out = append(out, h+family.digit)
			}
		}
	}
	return out
}

// missingHooks are the wanted ones that no program of Cilium is on.
func missingHooks(group agent.Cgroup, want []string) []string {
	mine := ours(group)
	return slices.DeleteFunc(want, func(hook string) bool {
		return slices.ContainsFunc(mine, func(p agent.CgroupProgram) bool { return p.Hook == hook })
	})
}

// ours are Cilium's programs: cil_sock4_connect, and sock4_connect before 1.12.
func ours(group agent.Cgroup) []agent.CgroupProgram {
	var out []agent.CgroupProgram
	for _, p := range group.Programs {
		if name := strings.TrimPrefix(p.Name, "cil_"); strings.HasPrefix(name, "sock4_") || strings.HasPrefix(name, "sock6_") || strings.HasPrefix(name, "sock_release") {
			out = append(out, p)
		}
	}
	return out
}
