// Package netfiltertest does to a save what iptables-restore does to a kernel,
// so that tests can change rules and look at them again. It is a second opinion:
// nothing of it is shared with the package that it tests.
package netfiltertest

import (
	"fmt"
	"slices"
	"strings"
)

// Restore is the save after iptables-restore --noflush has read input. It fails
// where the kernel would refuse, and then the save is as it was. Chains are in
// the order of their names, and rows in theirs.
func Restore(save, input string) (string, error) {
	var r rules
	for line := range strings.Lines(save + input) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' || line == "COMMIT" {
			continue
		}
		if err := r.do(line); err != nil {
			return save, err
		}
	}
	return r.String(), nil
}

// Plain is a save without its counters.
func Plain(save string) string {
	var plain strings.Builder
	for line := range strings.Lines(save) {
		if line[0] == '[' {
			_, line, _ = strings.Cut(line, "] ")
		}
		plain.WriteString(line)
	}
	return plain.String()
}

type table struct {
	name   string
	chains []string // with their policy
	rows   []string
}

type rules struct {
	tables []*table
	at     *table
}

func chainOf(row string) string { return strings.Fields(row)[1] }

func (r *rules) do(line string) error {
	if line[0] == '*' {
		for _, t := range r.tables {
			if r.at = t; t.name == line[1:] {
				return nil
			}
		}
		r.at = &table{name: line[1:]}
		r.tables = append(r.tables, r.at)
		return nil
	}
	if r.at == nil {
		return fmt.Errorf("%q is in no table", line)
	}
	return r.at.do(line)
}

func (t *table) do(line string) error {
	if line[0] == ':' {
		name, _, _ := strings.Cut(line[1:], " ")
		t.flush(name)
		if !t.has(name) {
			t.chains = append(t.chains, line)
		}
		return nil
	}
	op, rest, _ := strings.Cut(line, " ")
	switch op {
	case "-A":
		t.rows = append(t.rows, line)
	case "-D":
		i := slices.Index(t.rows, "-A "+rest)
		if i < 0 {
			return fmt.Errorf("%s: no such row", line)
		}
		t.rows = slices.Delete(t.rows, i, i+1)
	case "-I":
		return t.insert(line)
	case "-F":
		t.flush(rest)
	case "-X":
		for _, row := range t.rows {
			if chainOf(row) == rest || strings.HasSuffix(row, "-j "+rest) || strings.HasSuffix(row, "-g "+rest) {
				return fmt.Errorf("%s: in use by %s", line, row)
			}
		}
		if !t.has(rest) {
			return fmt.Errorf("%s: no such chain", line)
		}
		t.chains = slices.DeleteFunc(t.chains, func(c string) bool { return strings.HasPrefix(c, ":"+rest+" ") })
	default:
		return fmt.Errorf("%s: not understood", line)
	}
	return nil
}

func (t *table) has(chain string) bool {
	return slices.ContainsFunc(t.chains, func(c string) bool { return strings.HasPrefix(c, ":"+chain+" ") })
}

func (t *table) flush(chain string) {
	t.rows = slices.DeleteFunc(t.rows, func(row string) bool { return chainOf(row) == chain })
}

func (t *table) insert(line string) error {
	var chain string
	var n int
	if _, err := fmt.Sscanf(line, "-I %s %d", &chain, &n); err != nil {
		return fmt.Errorf("%s: %w", line, err)
	}
	_, rest, _ := strings.Cut(strings.TrimPrefix(line, "-I "+chain+" "), " ")
	i := 0
	for ; i < len(t.rows); i++ {
		if chainOf(t.rows[i]) == chain {
			if n--; n == 0 {
				break
			}
		}
	}
	t.rows = slices.Insert(t.rows, i, "-A "+chain+" "+rest)
	return nil
}

// String is the save.
func (r *rules) String() string {
	var out strings.Builder
	for _, t := range r.tables {
		order := slices.Sorted(slices.Values(t.chains))
		fmt.Fprintf(&out, "*%s\n%s\n", t.name, strings.Join(order, "\n"))
		for _, c := range order {
			name, _, _ := strings.Cut(c[1:], " ")
			for _, row := range t.rows {
				if chainOf(row) == name {
					out.WriteString(row + "\n")
				}
			}
		}
		out.WriteString("COMMIT\n")
	}
	return out.String()
}
