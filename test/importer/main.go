// Importer makes the fixtures in test/fixtures from recordings of a cluster:
//
//	go run ./test/importer CAPTURES_DIR OUT_DIR
//
// CAPTURES_DIR holds one folder per recorded state, OUT_DIR gets one folder per
// fixture. A fixture's old folder is replaced as a whole.
package main

import (
	"log"
	"os"

	"github.com/kubectl-kpr/kubectl-kpr/test/importer/captures"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: importer CAPTURES_DIR OUT_DIR")
	}
	if err := captures.Import(os.Args[1], os.Args[2], captures.Recipes()); err != nil {
		log.Fatal(err)
	}
}
