package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// The lines of a document between which the table stands.
const (
	tableBegins = "<!-- The table below is written by `make scale`. -->"
	tableEnds   = "<!-- End of the table. -->"
)

// table measures every size and prints or keeps the table.
func table(ctx context.Context, out io.Writer, args []string) error {
	set := flag.NewFlagSet("scale table", flag.ContinueOnError)
	recorded := recordedFlag(set)
	plugin := set.String("plugin", "bin/kubectl-kpr", "the binary that is measured")
	into := set.String("o", "", "the document whose table is replaced; without it the table is printed")
	nodes := set.Int("nodes", 1000, "the largest number of nodes")
	services := set.Int("services", 10_000, "the largest number of Services")
	if err := set.Parse(args); err != nil {
		return err
	}
	var rows []measured
	for _, s := range []int{100, 1000, 10_000} {
		for _, n := range []int{10, 100, 1000} {
			if s > *services || n > *nodes {
				continue
			}
			more, err := measureWorld(ctx, world{nodes: n, services: s, backends: 3, ingress: 3}, faults{}, *recorded, *plugin)
			if err != nil {
				return err
			}
			rows = append(rows, more...)
		}
	}
	if *nodes >= 1000 && *services >= 1000 { // thirty of a thousand misbehave
		fs := faults{slow: 5, hung: 5, cut: 5, forbidden: 5, lost: 5, stale: 5}
		more, err := measureWorld(ctx, world{nodes: 1000, services: 1000, backends: 3, ingress: 3}, fs, *recorded, *plugin)
		if err != nil {
			return err
		}
		for i := range more {
			more[i].command += ", 30 nodes misbehave"
		}
		rows = append(rows, more...)
	}
	text := written(rows)
	if *into == "" {
		_, err := io.WriteString(out, text)
		return err
	}
	return replace(*into, text)
}

func measureWorld(ctx context.Context, w world, fs faults, recorded, plugin string) ([]measured, error) {
	h, err := newHost()
	if err != nil {
		return nil, err
	}
	defer h.close()
	c, err := start(h, w, fs, recorded, 1)
	if err != nil {
		return nil, err
	}
	plugin, err = filepath.Abs(plugin)
	if err != nil {
		return nil, err
	}
	var rows []measured
	for _, args := range [][]string{
		{"status", "-q", "--deadline", "10m"},
	} {
		m, err := c.measure(ctx, plugin, args...)
		if err != nil {
			return rows, err
		}
		m.command = args[0]
		if _, err := fmt.Fprintln(os.Stderr, m.row(), m.verdict); err != nil {
			return rows, err
		}
		rows = append(rows, m)
	}
	return rows, nil
}

func (m measured) row() string {
	return fmt.Sprintf("| %d | %d | %s | %.1f s | %.1f s | %.1f s | %.0f MiB | %.1f kB | %d exec, %d list, %d other | %d |", m.nodes, m.services, m.command,
		m.wall.Seconds(), m.slept.Seconds()/float64(m.nodes), m.busy.Seconds(), float64(m.memory)/(1<<20), float64(m.bytes)/float64(m.nodes)/1e3,
		m.calls["exec"], m.calls["list"], m.calls["get"]+m.calls["log"], m.code)
}

func written(rows []measured) string {
	var out strings.Builder
	fmt.Fprintf(&out, "Measured on %s, %s, with Linux on %d processors.\n\n", time.Now().UTC().Format("2006-01-02"), runtime.Version(), runtime.NumCPU())
	out.WriteString("| nodes | Services | command | wall | slept per node | client CPU | peak memory | sent per node | API calls | exit code |\n")
	out.WriteString("| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | --- | ---: |\n")
	for _, m := range rows {
		out.WriteString(m.row() + "\n")
	}
	return out.String()
}

// replace puts the table into a document.
func replace(file, text string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(data, []byte(tableBegins))
	_, after, ends := bytes.Cut(rest, []byte(tableEnds))
	if !ok || !ends {
		return errors.New(file + ": no place for a table")
	}
	out := string(before) + tableBegins + "\n\n" + text + "\n" + tableEnds + string(after)
	return os.WriteFile(file, []byte(out), 0o644)
}
