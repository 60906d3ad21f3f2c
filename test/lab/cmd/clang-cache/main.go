// Command clang-cache stands before clang in the agent's image and remembers
// what it compiled. An agent compiles its programs at every start, half a
// minute of CPU on each node, and until that is done no pod of the node gets
// its network. The result depends on the preprocessed source and the arguments
// alone, so the same node with the same settings need not do it twice.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
)

const (
	clang = "/usr/lib/llvm-19/bin/clang"
	// On the node and not in the container, so that it outlives the pod.
	store = "/var/run/cilium/lab-clang-cache"
)

func main() {
	args := os.Args[1:]
	// The agent compiles to standard output; anything else is clang's own affair.
	i := slices.Index(args, "-o")
	if !slices.Contains(args, "-c") || slices.Contains(args, "-E") || i < 0 || i+1 >= len(args) || args[i+1] != "-" {
		fatal(syscall.Exec(clang, append([]string{"clang"}, args...), os.Environ()))
	}
	key, err := keyOf(args)
	fatal(err)
	object := filepath.Join(store, key)
	if data, err := os.ReadFile(object); err == nil {
		_, err = os.Stdout.Write(data)
		fatal(err)
		return
	}
	fatal(compile(args, object))
}

// keyOf is a digest of the arguments and of what the preprocessor makes of the
// source.
func keyOf(args []string) (string, error) {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%q\n", args)
	cmd := exec.Command(clang, append([]string{"-E"}, args...)...)
	cmd.Stdout, cmd.Stderr = h, os.Stderr
	err := cmd.Run()
	return hex.EncodeToString(h.Sum(nil)), err
}

func compile(args []string, object string) error {
	var out bytes.Buffer
	cmd := exec.Command(clang, args...)
	cmd.Stdout, cmd.Stderr = io.MultiWriter(os.Stdout, &out), os.Stderr
	if err := cmd.Run(); err != nil {
		return err
	}
	if err := os.MkdirAll(store, 0o755); err != nil {
		return err
	}
	part := fmt.Sprintf("%s.%d", object, os.Getpid())
	if err := os.WriteFile(part, out.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(part, object)
}

func fatal(err error) {
	if err == nil {
		return
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	fmt.Fprintln(os.Stderr, "clang-cache:", err)
	os.Exit(1)
}
