// Command size says which Go modules fill a binary: it adds up the symbols that
// `go tool nm` lists, by the module that the binary's own build information
// names. The binary must not be stripped; -stripped names the one that ships,
// whose size on disk is told first.
package main

import (
	"bufio"
	"cmp"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

func main() {
	top := flag.Int("top", 10, "how many modules to list")
	stripped := flag.String("stripped", "", "the binary as it ships")
	flag.Parse()
	if err := run(os.Stdout, flag.Arg(0), *stripped, *top); err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, path, stripped string, top int) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	if stripped != "" {
		st, err := os.Stat(stripped)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%.1f MB  on disk, of which symbols name (line tables and type data have none):\n", mega(st.Size()))
	}
	modules := []string{info.Main.Path}
	for _, m := range info.Deps {
		modules = append(modules, m.Path)
	}
	sizes, err := symbols(path, modules)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(sizes))
	for name := range sizes {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[b], sizes[a]), cmp.Compare(a, b))
	})
	for _, name := range names[:min(top, len(names))] {
		fmt.Fprintf(w, "%.1f MB  %s\n", mega(sizes[name]), name)
	}
	return nil
}

func mega(n int64) float64 { return float64(n) / 1e6 }

// symbols adds up code and read-only data by module. Writable data is left out:
// nm does not tell what lies in the file from what is only room in memory.
func symbols(path string, modules []string) (map[string]int64, error) {
	nm := exec.Command("go", "tool", "nm", "-size", path)
	nm.Stderr = os.Stderr
	out, err := nm.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := nm.Start(); err != nil {
		return nil, err
	}
	sizes := map[string]int64{}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 4 || !strings.Contains("TtRr", f[2]) {
			continue
		}
		n, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			continue
		}
		sizes[owner(f[3], modules)] += n
	}
	return sizes, errors.Join(lines.Err(), nm.Wait())
}

// owner finds the module with the longest path that begins the symbol's name.
func owner(symbol string, modules []string) string {
	symbol = strings.TrimPrefix(symbol, "type:")
	symbol = strings.TrimLeft(symbol, ".*[]")
	best := ""
	for _, m := range modules {
		rest, ok := strings.CutPrefix(symbol, m)
		if ok && len(m) > len(best) && (rest == "" || rest[0] == '/' || rest[0] == '.') {
			best = m
		}
	}
	switch {
	case best != "":
		return best
	case strings.HasPrefix(symbol, "runtime.") || strings.HasPrefix(symbol, "go:"):
		return "the runtime and the linker's tables"
	}
	return "the standard library"
}
