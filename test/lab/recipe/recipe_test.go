package recipe

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/place"
)

// The same content gives the same layer, whatever the order of putting it in.
func TestLayerIsReproducible(t *testing.T) {
	sum := func(names ...string) string {
		l := newLayer()
		for _, n := range names {
			l.put(n, file{data: n, mode: 0o644})
		}
		s, err := l.write(filepath.Join(t.TempDir(), "l.tar"))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if a, b := sum("etc/a", "usr/bin/b"), sum("usr/bin/b", "etc/a"); a != b {
		t.Errorf("%s and %s", a, b)
	}
	if a, b := sum("etc/a"), sum("etc/b"); a == b {
		t.Error("different layers have one sum")
	}
}

// A change of a recipe's files changes its key, and only its.
func TestKeyFollowsTheRecipe(t *testing.T) {
	d := place.Dirs{Source: t.TempDir(), Cache: t.TempDir()}
	for _, dir := range []string{"builds/etcd", "builds/cni"} {
		if err := os.MkdirAll(filepath.Join(d.Source, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d.Source, dir, "go.mod"), []byte("module x\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	key := func(dir string) string {
		k, err := Module{Dir: dir, Bins: []Bin{{Name: dir}}}.Key(d)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	etcd, cni := key("etcd"), key("cni")
	if err := os.WriteFile(filepath.Join(d.Source, "builds/etcd/go.mod"), []byte("module y\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if key("etcd") == etcd || key("cni") != cni {
		t.Error("keys do not follow the recipes")
	}
}

// Databases are copied, for containerd writes into them; the rest is shared.
func TestStockSharesAllButDatabases(t *testing.T) {
	store, to := t.TempDir(), filepath.Join(t.TempDir(), "node")
	for _, n := range []string{"blob", "meta.db"} {
		if err := os.WriteFile(filepath.Join(store, n), []byte(n), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := Stock(store, to); err != nil {
		t.Fatal(err)
	}
	for n, shared := range map[string]bool{"blob": true, "meta.db": false} {
		a, err1 := os.Stat(filepath.Join(store, n))
		b, err2 := os.Stat(filepath.Join(to, n))
		if err1 != nil || err2 != nil || os.SameFile(a, b) != shared {
			t.Errorf("%s: shared is not %v (%v %v)", n, shared, err1, err2)
		}
	}
}
