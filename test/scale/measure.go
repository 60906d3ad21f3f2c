package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// measured is one run of the plugin against a simulated cluster.
type measured struct {
	world
	command string
	wall    time.Duration
	busy    time.Duration // of the client's processor
	memory  int64         // bytes, the most that were resident
	bytes   int64         // that the nodes sent
	slept   time.Duration // of all agents together
	execs   int64
	calls   map[string]int
	code    int
	verdict string
}

// measure runs the plugin as its user would.
func (c *cluster) measure(ctx context.Context, plugin string, args ...string) (measured, error) {
	m := measured{world: c.fleet.world, command: strings.Join(args, " ")}
	before := c.calls()
	c.fleet.execs.Store(0)
	c.fleet.bytes.Store(0)
	c.fleet.slept.Store(0)
	cmd := exec.CommandContext(ctx, plugin, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	start := time.Now()
	err := cmd.Run()
	m.wall = time.Since(start)
	if cmd.ProcessState == nil {
		return m, err
	}
	m.code = cmd.ProcessState.ExitCode()
	if m.code == 1 || m.code < 0 {
		return m, fmt.Errorf("%s %s: %w: %s", plugin, m.command, err, errOut.String())
	}
	m.busy = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		m.memory = usage.Maxrss << 10 // Linux counts KiB
	}
	m.execs, m.bytes, m.slept = c.fleet.execs.Load(), c.fleet.bytes.Load(), time.Duration(c.fleet.slept.Load())
	m.calls = c.calls()
	for verb, n := range before {
		m.calls[verb] -= n
	}
	m.verdict, _, _ = strings.Cut(out.String(), "\n")
	if c.fleet.unkept != nil {
		return m, fmt.Errorf("the simulation has no answer: %q", c.fleet.unkept)
	}
	return m, nil
}
