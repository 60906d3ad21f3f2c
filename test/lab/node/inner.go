package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/machine"
	"github.com/kubectl-kpr/kubectl-kpr/test/lab/place"
)

// RunInner is the life of a node's process 1. It returns only on failure.
func RunInner(d place.Dirs, name, bin string) error {
	n, err := place.NodeOf(name)
	if err != nil {
		return err
	}
	hs, err := machine.Hierarchies()
	if err != nil {
		return err
	}
	if err := enter(d, name, hs); err != nil {
		return fmt.Errorf("node %s: %w", name, err)
	}
	if err := errors.Join(unix.Sethostname([]byte(name)), configure(d, n)); err != nil {
		return fmt.Errorf("node %s: %w", name, err)
	}
	k := newKeeper("/var/log/lab")
	k.keep("containerd", "containerd", "-c", "/etc/kubernetes/containerd.toml")
	if n.ControlPlane {
		for _, s := range controlPlane(d, bin) {
			k.keep(s.name, s.argv...)
		}
	}
	go func() {
		for {
			if _, err := os.Stat("/run/containerd/containerd.sock"); err == nil {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		k.keep("kubelet", filepath.Join(bin, "kubelet"), "--config=/etc/kubernetes/kubelet.yaml", "--kubeconfig=/etc/kubernetes/kubelet.conf",
			"--hostname-override="+name, "--node-ip="+n.IP4+","+n.IP6, "--v=2")
	}()
	return k.reap()
}
