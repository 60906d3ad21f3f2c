// Command kubectl-kpr is the kubectl plugin `kubectl kpr`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Execute(ctx, cli.System(), os.Args[1:])
	stop()
	os.Exit(code)
}
