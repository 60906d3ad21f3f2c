// Package place says where the lab keeps its things and what it calls them.
//
// Three folders matter. The checkout holds the recipes. The cache holds what
// they made, each under a name derived from its content, so that a change of
// recipe never meets an old result. The state folder holds one run of the lab:
// the nodes' disks, logs, keys, and the ledger of all that was taken from the
// machine.
package place

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Dirs are the lab's folders, all absolute.
type Dirs struct {
	Source string // test/lab in the checkout; "" outside of one
	Cache  string
	State  string
	Cilium Cilium // the version that is or will be run
}

// Find reads KPR_LAB_SOURCE, KPR_LAB_CACHE and KPR_LAB_STATE and falls back on
// the working directory's checkout and the user's cache and state folders. The
// version of Cilium is the one of KPR_LAB_CILIUM, else of the run in the state
// folder, else the first of Ciliums.
func Find() (Dirs, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/root"
	}
	cache := cmp.Or(os.Getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache"))
	state := cmp.Or(os.Getenv("XDG_STATE_HOME"), filepath.Join(home, ".local", "state"))
	d := Dirs{
		Source: os.Getenv("KPR_LAB_SOURCE"),
		Cache:  cmp.Or(os.Getenv("KPR_LAB_CACHE"), filepath.Join(cache, "kubectl-kpr-lab")),
		State:  cmp.Or(os.Getenv("KPR_LAB_STATE"), filepath.Join(state, "kubectl-kpr-lab")),
	}
	if d.Source == "" {
		d.Source = checkout()
	}
	for _, p := range []*string{&d.Source, &d.Cache, &d.State} {
		if *p == "" {
			continue
		}
		if *p, err = filepath.Abs(*p); err != nil {
			return d, fmt.Errorf("folders of the lab: %w", err)
		}
	}
	if version := os.Getenv("KPR_LAB_CILIUM"); version != "" {
		d.Cilium, err = ciliumOf(version)
		return d, err
	}
	recorded, _ := os.ReadFile(d.Under(ciliumFile))
	if d.Cilium, err = ciliumOf(strings.TrimSpace(string(recorded))); err != nil {
		d.Cilium = Ciliums()[0] // a run of another checkout is to be removed all the same
	}
	return d, nil
}

const ciliumFile = "cilium"

// KeepCilium writes the version into the state folder, so that later commands
// on this run know it without being told.
func (d Dirs) KeepCilium() error {
	if err := os.MkdirAll(d.State, 0o755); err != nil {
		return err
	}
	return os.WriteFile(d.Under(ciliumFile), []byte(d.Cilium.Version+"\n"), 0o644)
}

// checkout walks up from the working directory to the folder of recipes.
func checkout() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for {
		for _, sub := range []string{"test/lab", "."} {
			p := filepath.Join(dir, sub)
			if _, err := os.Stat(filepath.Join(p, "builds", "cilium", "go.mod")); err == nil {
				return p
			}
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// Under joins names to the state folder.
func (d Dirs) Under(names ...string) string {
	return filepath.Join(append([]string{d.State}, names...)...)
}

// Node is one node's folder in the state folder.
func (d Dirs) Node(name string, more ...string) string {
	return d.Under(append([]string{"nodes", name}, more...)...)
}

// Kubeconfig is the administrator's, and works from the host.
func (d Dirs) Kubeconfig() string { return d.Under("kubeconfig") }

// Audit is the API server's audit log, one JSON event a line.
func (d Dirs) Audit() string { return d.Under("audit", "audit.log") }

// Node is a machine of the lab.
type Node struct {
	Name, IP4, IP6 string
	ControlPlane   bool
}

// Nodes are the lab's machines, the control plane first. Each is a network
// namespace of the same name.
func Nodes() []Node {
	return []Node{
		{Name: "kpr-cp", IP4: "172.30.0.11", IP6: "fd00:30::11", ControlPlane: true},
		{Name: "kpr-w1", IP4: "172.30.0.12", IP6: "fd00:30::12"},
		{Name: "kpr-w2", IP4: "172.30.0.13", IP6: "fd00:30::13"},
	}
}

// NodeOf finds a node by name.
func NodeOf(name string) (Node, error) {
	for _, n := range Nodes() {
		if n.Name == name {
			return n, nil
		}
	}
	return Node{}, fmt.Errorf("node %q: the lab has no such node", name)
}

// What the lab's networks are called and which addresses they have.
const (
	Fabric      = "kpr-fabric" // the namespace of the bridge that joins the nodes
	Gateway4    = "172.30.0.1"
	Gateway6    = "fd00:30::1"
	APIHost     = "172.30.0.11"
	APIPort     = "6443"
	PodCIDRs    = "10.244.0.0/16,fd00:10:244::/56"
	ServiceCIDR = "10.96.0.0/16,fd00:10:96::/112"
	CgroupRoot  = "kpr-lab" // in every hierarchy of control groups
)

// Kubernetes is the version that the lab runs. Changing it changes the go.mod
// of its module under builds as well.
const Kubernetes = "v1.34.3"

// Cilium is a version that the lab can run, and the folder under builds that
// holds its module; its chart and BPF programs are in the module too.
type Cilium struct{ Version, Builds string }

// Ciliums are the versions that the lab can run, the usual one first.
func Ciliums() []Cilium {
	return []Cilium{{"1.20.2", "cilium"}, {"1.19.1", "cilium-1.19"}}
}

func ciliumOf(version string) (Cilium, error) {
	all := Ciliums()
	var known []string
	for _, c := range all {
		if version == "" || version == c.Version {
			return c, nil
		}
		known = append(known, c.Version)
	}
	return Cilium{}, fmt.Errorf("cilium %q: the lab has no recipe for it, only for %s", version, strings.Join(known, ", "))
}

// AgentImage is the reference by which pods name the agent's image.
func (c Cilium) AgentImage() string { return "localhost/cilium:v" + c.Version }

// OperatorImage is the one of the operator.
func (c Cilium) OperatorImage() string { return "localhost/operator-generic:v" + c.Version }
