package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/cluster"
	"github.com/kubectl-kpr/kubectl-kpr/test/lab/machine"
	"github.com/kubectl-kpr/kubectl-kpr/test/lab/node"
	"github.com/kubectl-kpr/kubectl-kpr/test/lab/place"
	"github.com/kubectl-kpr/kubectl-kpr/test/lab/recipe"
	"github.com/kubectl-kpr/kubectl-kpr/test/lab/states"
)

func doctor(context.Context, place.Dirs, []string) error {
	missing := machine.Missing()
	for _, m := range missing {
		fmt.Println("missing:", m)
	}
	if len(missing) > 0 {
		return fmt.Errorf("this machine cannot run the lab: %d things are missing", len(missing))
	}
	fmt.Println("this machine can run the lab")
	return nil
}

func build(ctx context.Context, d place.Dirs, _ []string) error {
	_, err := stock(ctx, d)
	return err
}

// stock builds what is missing and returns the image store.
func stock(ctx context.Context, d place.Dirs) (string, error) {
	if missing := machine.Missing(); len(missing) > 0 {
		return "", fmt.Errorf("this machine cannot run the lab:\n  %s", strings.Join(missing, "\n  "))
	}
	if d.Source == "" {
		return "", errors.New("no checkout above the working directory; KPR_LAB_SOURCE names its folder test/lab")
	}
	bins, err := recipe.Build(ctx, d, os.Stdout)
	if err != nil {
		return "", err
	}
	return recipe.Store(ctx, d, bins, os.Stdout)
}

// alone keeps other commands that change the lab out while this one runs.
func alone(d place.Dirs) (release func(), err error) {
	path := d.State + ".lock"
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, fmt.Errorf("%s: another kpr-lab is changing the lab: %w", path, err)
	}
	return func() { _ = f.Close() }, nil
}

func up(ctx context.Context, d place.Dirs, args []string) error {
	name := "kpr"
	if len(args) > 0 {
		name = args[0]
	}
	wanted, err := states.Find(name)
	if err != nil {
		return err
	}
	release, err := alone(d)
	if err != nil {
		return err
	}
	defer release()
	store, err := stock(ctx, d)
	if err != nil {
		return err
	}
	port := 16443
	if p := os.Getenv("KPR_LAB_PORT"); p != "" {
		if port, err = strconv.Atoi(p); err != nil {
			return fmt.Errorf("KPR_LAB_PORT: %w", err)
		}
	}
	l, err := cluster.New(d, os.Stdout)
	if err != nil {
		return err
	}
	if err := l.Up(ctx, store, port, wanted.Base); err != nil {
		return fmt.Errorf("%w\nlogs are under %s; kpr-lab down removes it all", err, d.Under("nodes"))
	}
	if err := states.Enter(ctx, l, name); err != nil {
		return err
	}
	fmt.Println("export KUBECONFIG=" + d.Kubeconfig())
	return nil
}

func state(ctx context.Context, d place.Dirs, args []string) error {
	l, err := cluster.New(d, os.Stdout)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		name, err := states.Current(l)
		fmt.Println(name)
		return err
	}
	release, err := alone(d)
	if err != nil {
		return err
	}
	defer release()
	return states.Enter(ctx, l, args[0])
}

func list(_ context.Context, _ place.Dirs, args []string) error {
	all := states.All()
	if slices.Contains(args, "json") {
		type row struct {
			Name   string        `json:"name"`
			Doc    string        `json:"doc"`
			Fault  bool          `json:"fault"`
			Base   cluster.Base  `json:"base"`
			Expect states.Expect `json:"expect"`
		}
		var rows []row
		for _, s := range all {
			rows = append(rows, row{s.Name, s.Doc, s.Enter != nil, s.Base, s.Expect})
		}
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(rows)
	}
	for _, s := range all {
		fmt.Printf("%-20s %s\n", s.Name, s.Doc)
	}
	return nil
}

func status(ctx context.Context, d place.Dirs, _ []string) error {
	l, err := cluster.New(d, os.Stdout)
	if err != nil {
		return err
	}
	_, missing, err := recipe.Built(d)
	if err != nil {
		return err
	}
	name, _ := states.Current(l)
	base, _ := l.Base()
	fmt.Printf("cache   %s\nstate   %s\ncilium  %s\nto build %s\nin state %q, base %+v\n", d.Cache, d.State, d.Cilium.Version, strings.Join(missing, " "), name, base)
	running := l.Nodes()
	for _, n := range place.Nodes() {
		fmt.Printf("node    %s %s\n", n.Name, running[n.Name])
	}
	changed, err := machine.Changed(machine.OpenLedger(d.Under("ledger")))
	for _, c := range changed {
		fmt.Println("setting changed by the lab:", c)
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(d.Kubeconfig()); err == nil {
		out, err := l.Kubectl(ctx, "", "get", "nodes,pods", "-A", "-o", "wide", "--request-timeout=5s")
		fmt.Print(out)
		return err
	}
	return nil
}

func kubeconfig(_ context.Context, d place.Dirs, _ []string) error {
	fmt.Println(d.Kubeconfig())
	return nil
}

func audit(_ context.Context, d place.Dirs, _ []string) error {
	fmt.Println(d.Audit())
	return nil
}

func kubectl(ctx context.Context, d place.Dirs, args []string) error {
	bins, _, err := recipe.Built(d)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, bins["kubectl"], args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "KUBECONFIG="+d.Kubeconfig())
	return cmd.Run()
}

func in(_ context.Context, d place.Dirs, args []string) error {
	if len(args) > 1 && args[1] == "--" {
		args = append(args[:1], args[2:]...)
	}
	if len(args) < 2 {
		return errors.New("in: want NODE -- COMMAND...")
	}
	return node.Exec(d, args[0], args[1:])
}

func down(ctx context.Context, d place.Dirs, _ []string) error {
	release, err := alone(d)
	if err != nil {
		return err
	}
	defer release()
	l, err := cluster.New(d, os.Stdout)
	if err != nil {
		// Without a checkout nothing can be built, but all can be removed.
		l = &cluster.Lab{Dirs: d, Say: func(format string, args ...any) { fmt.Printf(format+"\n", args...) }}
	}
	return l.Down(ctx)
}
