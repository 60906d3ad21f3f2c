package main

import (
	"fmt"
	"os"
	"slices"
)

// host is the livetest.T of a cluster outside of tests.
type host struct {
	dir    string
	ends   []func()
	faults []string
}

func newHost() (*host, error) {
	dir, err := os.MkdirTemp("", "kpr-scale-")
	h := &host{dir: dir}
	h.Cleanup(func() { _ = os.RemoveAll(dir) })
	return h, err
}

func (h *host) Helper()          {}
func (h *host) Cleanup(f func()) { h.ends = append(h.ends, f) }

// TempDir is a new folder that goes with the host.
func (h *host) TempDir() string {
	dir, err := os.MkdirTemp(h.dir, "")
	if err != nil {
		h.Errorf("%v", err)
	}
	return dir
}

func (h *host) Errorf(format string, args ...any) {
	h.faults = append(h.faults, fmt.Sprintf(format, args...))
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func (h *host) Fatalf(format string, args ...any) {
	h.Errorf(format, args...)
	panic("the simulation cannot go on")
}

func (h *host) close() {
	for _, f := range slices.Backward(h.ends) {
		f()
	}
	h.ends = nil
}
