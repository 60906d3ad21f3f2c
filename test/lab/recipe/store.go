package recipe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/machine"
	"github.com/kubectl-kpr/kubectl-kpr/test/lab/place"
)

// storeRevision is to be raised whenever the making of images changes.
const storeRevision = "1"

// storeKey is a digest of the images: the binaries' keys and the versions of
// the packages whose programs they hold.
func storeKey(ctx context.Context, c place.Cilium, bins Bins) (string, error) {
	h := sha256.New()
	_, _ = fmt.Fprintln(h, storeRevision, c.Version, place.Kubernetes)
	for _, name := range []string{"echo", "clang-cache", "loopback", "kube-proxy", "cilium-agent"} {
		_, _ = fmt.Fprintln(h, name, filepath.Base(filepath.Dir(bins[name])))
	}
	packages := append(append(basePackages(), machine.Packages()...), "libc6")
	for _, p := range packages {
		out, _ := exec.CommandContext(ctx, "dpkg-query", "-W", "-f", "${Package} ${Version}\n", p).Output()
		_, _ = h.Write(out)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// Store is a folder that containerd takes as its root: every image imported
// and unpacked. A node gets a copy made of hard links, which takes a second
// where an import takes most of a minute; nothing writes to an unpacked layer.
func Store(ctx context.Context, d place.Dirs, bins Bins, w io.Writer) (string, error) {
	key, err := storeKey(ctx, d.Cilium, bins)
	if err != nil {
		return "", err
	}
	to := filepath.Join(d.Cache, "store", key)
	if _, err := os.Stat(to); err == nil {
		return to, nil
	}
	start := time.Now()
	work := to + ".part"
	if err := errors.Join(machine.Wipe(work), os.MkdirAll(work, 0o755)); err != nil {
		return "", err
	}
	cilium, err := CiliumDir(ctx, d)
	if err != nil {
		return "", err
	}
	tarball := filepath.Join(work, "images.tar")
	if err := archive(work, tarball, d.Cilium, cilium, bins); err != nil {
		return "", err
	}
	// The importer mounts, so it runs in a mount namespace of its own.
	cmd := exec.CommandContext(ctx, "/proc/self/exe", Importer, work, tarball)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if _, err := machine.RunWith(ctx, cmd); err != nil {
		return "", err
	}
	if err := os.Rename(filepath.Join(work, "root"), to); err != nil {
		return "", err
	}
	_, _ = fmt.Fprintf(w, "images made and unpacked in %s\n", time.Since(start).Round(time.Second))
	return to, os.RemoveAll(work)
}

// Importer is the word that makes this program the importer.
const Importer = "image-importer"

// Import starts a containerd of its own below work, imports the archive and
// ends it again.
func Import(ctx context.Context, work, tarball string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	socket := filepath.Join(work, "state", "containerd.sock")
	config := filepath.Join(work, "containerd.toml")
	toml := fmt.Sprintf("version = 2\nroot = %q\nstate = %q\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n[grpc]\n  address = %q\n",
		filepath.Join(work, "root"), filepath.Join(work, "state"), socket)
	if err := os.WriteFile(config, []byte(toml), 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "containerd", "-c", config)
	log, err := os.Create(filepath.Join(work, "containerd.log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	for range 200 {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	_, err = machine.Run(ctx, "ctr", "--address", socket, "-n", "k8s.io", "images", "import", "--snapshotter", "overlayfs", tarball)
	// On a request to end containerd closes its databases.
	err = errors.Join(err, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait()
	return err
}

// Stock gives a node its containerd root from the store.
func Stock(store, to string) error {
	return filepath.WalkDir(store, func(p string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(store, p)
		if err != nil {
			return err
		}
		return stock(p, filepath.Join(to, rel), e)
	})
}

// stock links a file, except for databases, which containerd writes in place.
func stock(from, to string, e os.DirEntry) error {
	info, err := e.Info()
	if err != nil {
		return err
	}
	switch {
	case e.IsDir():
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		return os.Chmod(to, info.Mode().Perm()|info.Mode()&os.ModeSticky)
	case info.Mode()&os.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case filepath.Ext(from) != ".db":
		if err := os.Link(from, to); !errors.Is(err, unix.EXDEV) {
			return err
		}
	}
	return machine.Copy(from, to, info.Mode().Perm())
}
