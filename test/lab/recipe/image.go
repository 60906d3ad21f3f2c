package recipe

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/place"
)

// Images are the references by which the lab's pods name what they run; those
// of Cilium are place.Cilium's.
const (
	PauseImage = "localhost/pause:lab"
	EchoImage  = "localhost/echo:lab"
	ProxyImage = "localhost/kube-proxy:" + place.Kubernetes
)

type image struct {
	tag        string
	entrypoint []string
	layers     []string
}

// archive writes all images as one archive that `ctr images import` reads,
// layers that images share stored once.
func archive(dir, to string, c place.Cilium, cilium string, bins Bins) error {
	layers, err := layersOf(cilium, bins)
	if err != nil {
		return err
	}
	sums := map[string]string{}
	for name, l := range layers {
		if sums[name], err = l.write(filepath.Join(dir, name+".tar")); err != nil {
			return err
		}
	}
	images := []image{
		{PauseImage, []string{"/echo", "-pause"}, []string{"echo"}},
		{EchoImage, []string{"/echo"}, []string{"echo"}},
		{ProxyImage, []string{"/usr/local/bin/kube-proxy"}, []string{"base", "proxy"}},
		{c.AgentImage(), nil, []string{"base", "llvm", "agent"}},
		{c.OperatorImage(), []string{"/usr/bin/cilium-operator-generic"}, []string{"operator"}},
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	w := tar.NewWriter(out)
	return errors.Join(writeArchive(w, dir, images, sums), w.Close(), out.Close())
}

func writeArchive(w *tar.Writer, dir string, images []image, sums map[string]string) error {
	type entry struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	var manifest []entry
	for _, im := range images {
		e := entry{RepoTags: []string{im.tag}}
		var ids []string
		for _, name := range im.layers {
			ids, e.Layers = append(ids, "sha256:"+sums[name]), append(e.Layers, name+".tar")
		}
		config, err := json.Marshal(map[string]any{
			"architecture": "amd64", "os": "linux", "history": []any{},
			"config": map[string]any{"Env": []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, "Entrypoint": im.entrypoint, "WorkingDir": "/"},
			"rootfs": map[string]any{"type": "layers", "diff_ids": ids},
		})
		if err != nil {
			return err
		}
		sum := sha256.Sum256(config)
		e.Config = hex.EncodeToString(sum[:]) + ".json"
		if err := member(w, e.Config, int64(len(config)), bytes.NewReader(config)); err != nil {
			return err
		}
		manifest = append(manifest, e)
	}
	for name := range sums {
		f, err := os.Open(filepath.Join(dir, name+".tar"))
		if err != nil {
			return err
		}
		info, err := f.Stat()
		if err == nil {
			err = member(w, name+".tar", info.Size(), f)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	data, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	return member(w, "manifest.json", int64(len(data)), bytes.NewReader(data))
}

func member(w *tar.Writer, name string, size int64, r io.Reader) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o644, Typeflag: tar.TypeReg}); err != nil {
		return fmt.Errorf("archive: %s: %w", name, err)
	}
	_, err := io.Copy(w, r)
	return err
}

// layersOf puts the layers of all images together.
func layersOf(cilium string, bins Bins) (map[string]*layer, error) {
	root, err := base()
	if err != nil {
		return nil, err
	}
	llvm, err := compiler(root, bins)
	if err != nil {
		return nil, err
	}
	agent, err := agent(cilium, bins)
	if err != nil {
		return nil, err
	}
	one := func(name, to string) *layer {
		l := newLayer()
		l.put("tmp", file{dir: true, mode: 0o1777})
		l.put("etc", file{dir: true, mode: 0o755})
		l.put(to, file{from: bins[name], mode: 0o755})
		return l
	}
	return map[string]*layer{
		"base": root, "llvm": llvm, "agent": agent,
		"proxy":    one("kube-proxy", "usr/local/bin/kube-proxy"),
		"operator": one("cilium-operator-generic", "usr/bin/cilium-operator-generic"),
		"echo":     one("echo", "echo"),
	}, nil
}

// compiler is clang and llc, with which the agent builds its programs. Debian's
// clang 19 is of the same LLVM that Cilium 1.20 ships with. Before clang stands
// a cache.
func compiler(below *layer, bins Bins) (*layer, error) {
	const at = "usr/lib/llvm-19/"
	l := newLayer()
	for _, name := range []string{"clang", "llc"} {
		real, err := filepath.EvalSymlinks("/" + at + "bin/" + name)
		if err != nil {
			return nil, err
		}
		l.put(at+"bin/"+name, file{from: real, mode: 0o755})
		l.put("usr/local/bin/"+name, file{link: "../../lib/llvm-19/bin/" + name})
	}
	l.put("usr/local/bin/clang", file{from: bins["clang-cache"], mode: 0o755})
	resources, err := filepath.EvalSymlinks("/" + at + "lib/clang/19/include")
	if err != nil {
		return nil, err
	}
	if err := l.copy(resources, at+"lib/clang/19/include"); err != nil {
		return nil, err
	}
	return l, l.addLibraries(below)
}

// agent is what Cilium's own image holds above its base.
func agent(cilium string, bins Bins) (*layer, error) {
	l := newLayer()
	for _, name := range []string{"cilium-agent", "cilium-dbg", "cilium-health", "cilium-health-responder", "cilium-bugtool", "cilium-mount", "cilium-sysctlfix"} {
		l.put("usr/bin/"+name, file{from: bins[name], mode: 0o755})
	}
	l.put("usr/bin/cilium", file{link: "cilium-dbg"})
	l.put("opt/cni/bin/cilium-cni", file{from: bins["cilium-cni"], mode: 0o755})
	l.put("cni/loopback", file{from: bins["loopback"], mode: 0o755})
	l.put("home/cilium", file{dir: true, mode: 0o755})
	if err := l.copy(filepath.Join(cilium, "bpf"), "var/lib/cilium/bpf"); err != nil {
		return nil, err
	}
	for _, script := range []string{"images/cilium/init-container.sh", "plugins/cilium-cni/install-plugin.sh", "plugins/cilium-cni/cni-uninstall.sh"} {
		from := filepath.Join(cilium, script)
		if _, err := os.Stat(from); err != nil {
			return nil, err
		}
		l.put(filepath.Base(script), file{from: from, mode: 0o755})
	}
	return l, nil
}
