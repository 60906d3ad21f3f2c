package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
)

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		stop()
		log.Fatal("scale: ", err)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	if len(args) > 0 && args[0] == "serve" {
		return serve(ctx, out, args[1:])
	}
	if len(args) > 0 && args[0] == "table" {
		return table(ctx, out, args[1:])
	}
	return errors.New("usage: scale serve|table [flags]; -h after either lists them")
}

// serve raises a cluster and says how to reach it, until it is interrupted.
func serve(ctx context.Context, out io.Writer, args []string) error {
	var w world
	var fs faults
	set := flag.NewFlagSet("scale serve", flag.ContinueOnError)
	recorded := recordedFlag(set)
	factor := set.Float64("latency", 1, "how long agents sleep, times what was measured")
	set.IntVar(&w.nodes, "nodes", 10, "how many nodes")
	set.IntVar(&w.services, "services", 100, "how many Services")
	set.IntVar(&w.backends, "backends", 3, "how many backends each")
	set.IntVar(&w.ingress, "ingress", 3, "how many nodes hold backends of Local Services")
	set.IntVar(&fs.slow, "slow", 0, "nodes that answer after a minute")
	set.IntVar(&fs.hung, "hung", 0, "nodes that never answer")
	set.IntVar(&fs.cut, "cut", 0, "nodes whose first answer is cut off")
	set.IntVar(&fs.forbidden, "forbidden", 0, "nodes that may not be asked")
	set.IntVar(&fs.lost, "lost", 0, "nodes that lack a backend in the backend map")
	set.IntVar(&fs.stale, "stale", 0, "nodes that hold a stale backend")
	if err := set.Parse(args); err != nil {
		return err
	}
	if err := w.check(fs); err != nil {
		return err
	}
	h, err := newHost()
	if err != nil {
		return err
	}
	defer h.close()
	c, err := start(h, w, fs, *recorded, *factor)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "export KUBECONFIG=%s\n", c.kubeconfig); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func recordedFlag(set *flag.FlagSet) *string {
	return set.String("recorded", "test/scale/recorded", "folder with what one node answered")
}

// check refuses worlds that the addresses have no room for.
func (w world) check(fs faults) error {
	switch {
	case w.nodes < 1 || w.nodes > 2000:
		return fmt.Errorf("%d nodes: want 1 to 2000", w.nodes)
	case w.services < 0 || w.services > 20_000:
		return fmt.Errorf("%d Services: want 0 to 20000", w.services)
	case w.backends < 0 || w.services*w.backends > 4_000_000:
		return fmt.Errorf("%d backends for each of %d Services: want at most 4000000 in all", w.backends, w.services)
	case w.ingress < 1:
		return fmt.Errorf("%d ingress nodes: want 1 or more", w.ingress)
	case fs.sum()+w.ingress > w.nodes:
		return fmt.Errorf("%d nodes that misbehave and %d of ingress: there are %d nodes", fs.sum(), w.ingress, w.nodes)
	}
	return nil
}
