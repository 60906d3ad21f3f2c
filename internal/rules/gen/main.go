// Command gen writes docs/rules. It runs in internal/rules, where go generate
// starts it.
package main

import (
	"log"
	"os"
	"path/filepath"

	"github.com/kubectl-kpr/kubectl-kpr/internal/rules"
)

func main() {
	const dir = "../../docs/rules"
	if err := os.RemoveAll(dir); err != nil {
		log.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		log.Fatal(err)
	}
	for name, page := range rules.Pages() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(page), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
