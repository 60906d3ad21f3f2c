package cilium

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// The tables that `service list` is made of say the same as it does: both are
// of one moment on one agent.
func TestServiceTables(t *testing.T) {
	dirs, _ := filepath.Glob("testdata/*/tables-*")
	if len(dirs) == 0 {
		t.Fatal("no recordings")
	}
	for _, dir := range dirs {
		read := func(name string) []byte {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
		want, err := DecodeServiceListJSON(read("service-list.json"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeServiceTablesJSON(read(ServiceTablesStem + ".json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, fs := range [][]lb.Frontend{want, got} {
			for i := range fs {
				fs[i].ID = 0
				for j := range fs[i].Backends {
					fs[i].Backends[j].Preferred = false
				}
			}
		}
		if diff := cmp.Diff(want, got, cmpAddr); diff != "" {
			t.Errorf("%s (-service list +tables):\n%s", dir, diff)
		}
	}
}
