package cilium

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
)

// TestCgroup reads what different bpftools print: long and short names of
// hooks, names cut to 15 bytes, empty flags, programs without a name.
func TestCgroup(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		want    agent.Cgroup
		problem bool
	}{
		"new": {"/run/cilium/cgroupv2\nID       AttachType      AttachFlags     Name           \n955      cgroup_inet4_connect multi           cil_sock4_connect\n950      cgroup_udp6_sendmsg multi           cil_sock6_sendmsg\n953      cgroup_inet_sock_release multi           cil_sock_release\n",
			agent.Cgroup{Path: "/run/cilium/cgroupv2", Programs: []agent.CgroupProgram{{Hook: "connect4", Name: "cil_sock4_connect"}, {Hook: "sendmsg6", Name: "cil_sock6_sendmsg"}, {Hook: "sock_release", Name: "cil_sock_release"}}}, false},
		"old": {"ID       AttachType      AttachFlags     Name\n19       connect4        multi           sock4_connect\n20       getpeername6    multi           cil_sock6_getpe\n21       device          multi\n22       connect4                        mine\n",
			agent.Cgroup{Programs: []agent.CgroupProgram{{Hook: "connect4", Name: "sock4_connect"}, {Hook: "getpeername6", Name: "cil_sock6_getpe"}, {Hook: "device"}, {Hook: "connect4", Name: "mine"}}}, false},
		"nothing attached": {"/run/cilium/cgroupv2\n\n", agent.Cgroup{Path: "/run/cilium/cgroupv2"}, false},
		"a tree": {"CgroupPath\nID       AttachType      AttachFlags     Name\n/run/cilium/cgroupv2\n1      connect4 multi           cil_sock4_connect\n/run/cilium/cgroupv2/x\n    2      connect4 multi           other\n",
			agent.Cgroup{Path: "/run/cilium/cgroupv2", Programs: []agent.CgroupProgram{{Hook: "connect4", Name: "cil_sock4_connect"}}}, false},
		"words": {"Error: can't open cgroup\n", agent.Cgroup{}, true},
	} {
		got, err := DecodeCgroup([]byte(c.text))
		if (err != nil) != c.problem {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
