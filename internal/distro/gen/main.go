// Command gen writes docs/distributions.md. It runs in internal/distro, where
// go generate starts it.
package main

import (
	"log"
	"os"

	"github.com/kubectl-kpr/kubectl-kpr/internal/distro"
)

func main() {
	if err := os.WriteFile("../../docs/distributions.md", []byte(distro.Markdown()), 0o644); err != nil {
		log.Fatal(err)
	}
}
