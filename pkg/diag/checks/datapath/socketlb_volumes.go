package datapath

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// SocketLBVolumes checks socket LB against what kernels mount.
func SocketLBVolumes() *diag.Check {
	return &diag.Check{
		Name:  "socketlb-volumes",
		Doc:   "volumes that a kernel mounts through a ClusterIP, where socket LB translates it",
		Scope: diag.OfCluster,
		Rules: []*diag.Rule{socketLB},
		Wants: []fact.Named{fact.PersistentVolumes, fact.Services, fact.Status, fact.Nodes},
		Applies: func(v *fact.View) string {
			if _, err := fact.PersistentVolumes.From(v); err != nil {
				return "PersistentVolumes were not read"
			}
			return ""
		},
		Run: judgeVolumes,
	}
}

func judgeVolumes(p *diag.Pass) error {
	volumes, _ := fact.PersistentVolumes.From(p.View())
	services, _ := fact.Services.From(p.View())
	kernels := oldKernels(p.View())
	if len(kernels) == 0 {
		return nil
	}
	for i := range volumes {
		server := serverOf(&volumes[i])
		s := serviceAt(services, server)
		if s == nil {
			continue
		}
		p.Find(socketLB, diag.Report{
			Subject: "persistentvolume/" + volumes[i].Name, Address: server, Severity: diag.Warning, Proof: []fact.Named{fact.PersistentVolumes, fact.Services, fact.Status},
			Message: fmt.Sprintf("its server %s is Service %s/%s, mounted by a kernel (%s) with socket LB: the client keeps the translated address, and the mount hangs when the server's pod moves (needs Linux 6.6 or a backport of its kernel_connect fix)",
				server, s.Namespace, s.Name, some(kernels)),
		})
	}
	return nil
}

// oldKernels are those of nodes with socket LB that translate once only. A
// node whose kernel is not known counts, as its kernel may be one.
func oldKernels(v *fact.View) []string {
	nodes, _ := fact.Nodes.From(v)
	var out []string
	for node, st := range fact.Status.Each(v) {
		if st.Value == nil || st.Value.SocketLB != agent.On {
			continue
		}
		version := "Linux of unknown version"
		if i := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == node }); i >= 0 {
			version = cmp.Or(nodes[i].Status.NodeInfo.KernelVersion, version)
		}
		if major, minor := kernel(version); major > 6 || major == 6 && minor >= 6 {
			continue
		}
		if !slices.Contains(out, version) {
			out = append(out, version)
		}
	}
	return out
}

func kernel(version string) (major, minor int) {
	words := strings.SplitN(version, ".", 3)
	if len(words) < 2 {
		return 0, 0
	}
	major, _ = strconv.Atoi(words[0])
	minor, _ = strconv.Atoi(strings.TrimRightFunc(words[1], func(r rune) bool { return r < '0' || r > '9' }))
	return major, minor
}

// serverOf is the server that a kernel mounts a volume from, "" if none.
func serverOf(v *corev1.PersistentVolume) string {
	if v.Spec.NFS != nil {
		return v.Spec.NFS.Server
	}
	if csi := v.Spec.CSI; csi != nil {
		server := cmp.Or(csi.VolumeAttributes["server"], csi.VolumeAttributes["source"]) // smb: //server/share
		server, _, _ = strings.Cut(strings.TrimLeft(server, "/"), "/")
		return server
	}
	return ""
}

// serviceAt finds the Service that a server's name or address is.
func serviceAt(services []corev1.Service, server string) *corev1.Service {
	ip, err := netip.ParseAddr(server)
	for i := range services {
		s := &services[i]
		if err != nil {
			if name := s.Name + "." + s.Namespace; server == name || strings.HasPrefix(server, name+".svc") {
				return s
			}
			continue
		}
		if slices.ContainsFunc(append(slices.Clone(s.Spec.ClusterIPs), s.Spec.ClusterIP), func(text string) bool {
			at, err := netip.ParseAddr(text)
			return err == nil && at.Unmap() == ip.Unmap()
		}) {
			return s
		}
	}
	return nil
}
