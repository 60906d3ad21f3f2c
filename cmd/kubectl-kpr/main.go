// Command kubectl-kpr is the kubectl plugin `kubectl kpr`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cli"
	"github.com/kubectl-kpr/kubectl-kpr/internal/cli/act"
	"github.com/kubectl-kpr/kubectl-kpr/internal/host"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	env := cli.System()
	env.Host, env.Acts = host.New, act.Commands
	code := cli.Execute(ctx, env, os.Args[1:])
	stop()
	os.Exit(code)
}
