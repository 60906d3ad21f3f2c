package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/machine"
)

// Owner is the word that makes this program the owner of cilium-config.
const Owner = "owner"

const ownerFile = "owned.json" // its desired state; the owner ends when it is gone

// Own starts a process that puts cilium-config back to what it is now, again
// and again, as a GitOps controller does with what it owns.
func (l *Lab) Own(ctx context.Context) error {
	desired, err := l.Kubectl(ctx, "", "-n", "kube-system", "get", "cm/cilium-config", "-o", "jsonpath={.data}")
	if err != nil {
		return err
	}
	if err := os.WriteFile(l.Dirs.Under(ownerFile), []byte(`{"data":`+desired+`}`), 0o600); err != nil {
		return err
	}
	log, err := os.Create(l.Dirs.Under("owner.log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command("/proc/self/exe", Owner, l.Bins["kubectl"], l.Dirs.Kubeconfig(), l.Dirs.Under(ownerFile))
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("owner: %w", err)
	}
	return machine.OpenLedger(l.Dirs.Under("ledger")).Born(Owner, cmd.Process.Pid)
}

// Disown ends the owner within a few seconds.
func (l *Lab) Disown() error {
	err := os.Remove(l.Dirs.Under(ownerFile))
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// RunOwner is the life of the owner.
func RunOwner(ctx context.Context, kubectl, kubeconfig, desired string) error {
	for {
		if _, err := os.Stat(filepath.Clean(desired)); err != nil {
			return nil
		}
		cmd := exec.CommandContext(ctx, kubectl, "-n", "kube-system", "patch", "cm/cilium-config", "--type=merge", "--patch-file", desired)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Printf("%v: %s\n", err, out)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}
