package recipe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/machine"
	"github.com/kubectl-kpr/kubectl-kpr/test/lab/place"
)

// Module is a Go module under builds and the binaries made from it.
type Module struct {
	Dir     string // below builds; "" is the lab's own module
	Ldflags string
	Tags    string
	Bins    []Bin
}

// Bin is one binary: its name in the cache and the package it is built from.
type Bin struct{ Name, Package, Tags string }

// Modules lists every module, quick ones first, with one version of Cilium.
func Modules(c place.Cilium) []Module {
	kube := "-s -w"
	for _, p := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		v := strings.Split(strings.TrimPrefix(place.Kubernetes, "v"), ".")
		kube += fmt.Sprintf(" -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s -X %[1]s.gitTreeState=clean", p, place.Kubernetes, v[0], v[1])
	}
	var servers []Bin
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"} {
		servers = append(servers, Bin{Name: name, Package: "k8s.io/kubernetes/cmd/" + name})
	}
	return []Module{
		{Ldflags: "-s -w", Bins: []Bin{{Name: "echo", Package: "./cmd/echo"}, {Name: "clang-cache", Package: "./cmd/clang-cache"}}},
		{Dir: "cni", Ldflags: "-s -w", Bins: []Bin{{Name: "loopback", Package: "github.com/containernetworking/plugins/plugins/main/loopback"}}},
		{Dir: "etcd", Ldflags: "-s -w", Bins: []Bin{{Name: "etcd", Package: "go.etcd.io/etcd/server/v3"}}},
		{Dir: "helm", Ldflags: "-s -w", Bins: []Bin{{Name: "helm", Package: "helm.sh/helm/v3/cmd/helm"}}},
		{Dir: "kubernetes", Ldflags: kube, Bins: servers},
		ciliumModule(c),
	}
}

// ciliumModule builds an agent and all that its image holds. The commit is not
// known from a module and so is made of zeroes.
func ciliumModule(c place.Cilium) Module {
	const p = "github.com/cilium/cilium/"
	return Module{
		Dir:     c.Builds,
		Tags:    "osusergo",
		Ldflags: fmt.Sprintf(`-s -w -X "%spkg/version.ciliumVersion=%s 00000000 2026-01-01T00:00:00+00:00"`, p, c.Version),
		Bins: []Bin{
			{Name: "cilium-agent", Package: p + "daemon"},
			{Name: "cilium-dbg", Package: p + "cilium-dbg"},
			{Name: "cilium-operator-generic", Package: p + "operator", Tags: "ipam_provider_operator"},
			{Name: "cilium-cni", Package: p + "plugins/cilium-cni"},
			{Name: "cilium-health", Package: p + "cilium-health"},
			{Name: "cilium-health-responder", Package: p + "cilium-health/responder"},
			{Name: "cilium-bugtool", Package: p + "bugtool"},
			{Name: "cilium-mount", Package: p + "tools/mount"},
			{Name: "cilium-sysctlfix", Package: p + "tools/sysctlfix"},
		},
	}
}

// folder is where the module's go.mod is.
func (m Module) folder(d place.Dirs) string {
	if m.Dir == "" {
		return d.Source
	}
	return filepath.Join(d.Source, "builds", m.Dir)
}

// Key is a digest of all that decides what the module's binaries are.
func (m Module) Key(d place.Dirs) (string, error) {
	h := sha256.New()
	version, err := exec.Command("go", "env", "GOVERSION").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	_, _ = fmt.Fprintf(h, "%s%q %q %q\n", version, m.Ldflags, m.Tags, m.Bins)
	roots := []string{m.folder(d)}
	if m.Dir == "" {
		roots = nil
		for _, b := range m.Bins {
			roots = append(roots, filepath.Join(m.folder(d), b.Package))
		}
	}
	for _, root := range roots {
		if err := hashTree(h, root); err != nil {
			return "", fmt.Errorf("recipe %s: %w", m.Dir, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// hashTree adds every file below a folder, by name and content.
func hashTree(w io.Writer, root string) error {
	return filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(root, path)
		_, _ = fmt.Fprintf(w, "%s %x\n", rel, sha256.Sum256(data))
		return err
	})
}

// Bins are built binaries by name, as paths in the cache.
type Bins map[string]string

// Built tells where each binary is or will be, and which are not there yet.
func Built(d place.Dirs) (bins Bins, missing []string, err error) {
	bins = Bins{}
	for _, m := range Modules(d.Cilium) {
		key, err := m.Key(d)
		if err != nil {
			return nil, nil, err
		}
		for _, b := range m.Bins {
			path := filepath.Join(d.Cache, "bin", key, b.Name)
			bins[b.Name] = path
			if _, err := os.Stat(path); err != nil {
				missing = append(missing, b.Name)
			}
		}
	}
	return bins, missing, nil
}

// Build builds what is missing and says on w how long each binary took.
func Build(ctx context.Context, d place.Dirs, w io.Writer) (Bins, error) {
	bins, missing, err := Built(d)
	if err != nil {
		return nil, err
	}
	for _, m := range Modules(d.Cilium) {
		for _, b := range m.Bins {
			if !slices.Contains(missing, b.Name) {
				continue
			}
			start := time.Now()
			if err := m.build(ctx, d, b, bins[b.Name]); err != nil {
				return nil, err
			}
			_, _ = fmt.Fprintf(w, "built %s in %s\n", b.Name, time.Since(start).Round(time.Second))
		}
	}
	return bins, nil
}

// build makes one binary beside its place and then renames it, so that a path
// in the cache is always a whole binary.
func (m Module) build(ctx context.Context, d place.Dirs, b Bin, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	tags := strings.Trim(m.Tags+","+b.Tags, ",")
	cmd := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-trimpath", "-tags", tags, "-ldflags", m.Ldflags, "-o", to+".part", b.Package)
	cmd.Dir = m.folder(d)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if _, err := machine.RunWith(ctx, cmd); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", b.Name, err), os.Remove(to+".part"))
	}
	return os.Rename(to+".part", to)
}

// CiliumDir is where the Go command unpacked Cilium, with its chart and its BPF
// programs.
func CiliumDir(ctx context.Context, d place.Dirs) (string, error) {
	const module = "github.com/cilium/cilium"
	cmd := exec.CommandContext(ctx, "go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module)
	cmd.Dir = filepath.Join(d.Source, "builds", d.Cilium.Builds)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := machine.RunWith(ctx, cmd)
	if err != nil {
		return "", err
	}
	if out = strings.TrimSpace(out); out == "" {
		return "", fmt.Errorf("module %s: not downloaded", module)
	}
	return out, nil
}
