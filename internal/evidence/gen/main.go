// Command gen writes docs/evidence.md and docs/snapshot-format.md. It runs in internal/evidence, where go
// generate starts it.
package main

import (
	"log"
	"os"

	"github.com/kubectl-kpr/kubectl-kpr/internal/evidence"
)

func main() {
	for name, page := range evidence.Pages() {
		if err := os.WriteFile("../../docs/"+name, []byte(page), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
