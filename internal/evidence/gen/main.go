// Command gen writes docs/evidence.md. It runs in internal/evidence, where go
// generate starts it.
package main

import (
	"log"
	"os"

	"github.com/kubectl-kpr/kubectl-kpr/internal/evidence"
)

func main() {
	if err := os.WriteFile("../../docs/evidence.md", []byte(evidence.Markdown()), 0o644); err != nil {
		log.Fatal(err)
	}
}
