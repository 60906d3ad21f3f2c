package archtest

import "fmt"

// Foundations are the modules this plugin is built on: kubectl's own flags,
// client and command tree, tables, and Cilium's API models.
func Foundations() []string {
	return []string{
		"github.com/cilium/cilium",
		"github.com/olekukonko/tablewriter",
		"github.com/spf13/cobra",
		"k8s.io/cli-runtime",
		"k8s.io/client-go",
		"k8s.io/kubectl",
	}
}

// Unused finds foundations that go.mod does not require directly, or that no
// code of the product imports: a requirement nobody uses is dead weight.
func Unused(t *Tree) []string {
	imported := map[string]bool{}
	for _, f := range t.Files {
		if f.Test() || forTests(f.Dir()) {
			continue
		}
		for _, p := range f.Imports() {
			for _, m := range Foundations() {
				imported[m] = imported[m] || within(p, m)
			}
		}
	}
	var found []string
	for _, m := range Foundations() {
		if !t.Direct[m] {
			found = append(found, fmt.Sprintf("%s: go.mod does not require it directly", m))
		}
		if !imported[m] {
			found = append(found, fmt.Sprintf("%s: no code of the product imports it", m))
		}
	}
	return found
}
