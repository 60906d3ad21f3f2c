package netfilter

import (
	"fmt"
	"slices"
	"strings"
)

// GiveBack is what iptables-restore --noflush takes to put back what Removable
// finds in a backup, into the rules that are there now. Chains are written
// anew, whether they are there or not. A jump that is missing is put where it
// was among the rows of others that are still there; rows of others are not
// touched. Nothing but kube-proxy's chains and jumps is taken from the backup.
// It is empty where there is nothing to put back.
func GiveBack(backup, now []byte, kubelet bool) ([]byte, error) {
	removed, err := Removable(backup, kubelet)
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	old, err := decodeSave(backup)
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	present, err := decodeSave(now)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for _, t := range removed.Tables {
		_, _ = fmt.Fprintf(&b, "*%s\n", t.Table)
		for _, c := range t.Chains {
			b.WriteString(":" + c + " - [0:0]\n")
		}
		for _, r := range t.Rows {
			b.WriteString(r + "\n")
		}
		for _, chain := range builtins() {
			for _, row := range missing(old.rows(t.Table, chain), present.rows(t.Table, chain), t.Jumps) {
				b.WriteString(row + "\n")
			}
		}
		b.WriteString("COMMIT\n")
	}
	return []byte(b.String()), nil
}

// rows are those of one chain, as they are in the save.
func (s *save) rows(table, chain string) []string {
	var out []string
	for i := range s.rules.Rules {
		if r := &s.rules.Rules[i]; r.Table == table && r.Chain == chain {
			out = append(out, s.text(r))
		}
	}
	return out
}

// missing are the insertions that bring the jumps among old back into now.
func missing(old, now, jumps []string) []string {
	var out []string
	now = slices.Clone(now)
	at := 0 // behind the last row of old that was found
	for _, row := range old {
		if i := slices.Index(now[at:], row); i >= 0 {
			at += i + 1
			continue
		}
		if !slices.Contains(jumps, row) || times(now, row) >= times(old, row) {
			continue
		}
		chain, rest, _ := strings.Cut(strings.TrimPrefix(row, "-A "), " ")
		out = append(out, fmt.Sprintf("-I %s %d %s", chain, at+1, rest))
		now = slices.Insert(now, at, row)
		at++
	}
	return out
}

func times(rows []string, row string) int {
	n := 0
	for _, r := range rows {
		if r == row {
			n++
		}
	}
	return n
}

func builtins() []string {
	return []string{"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}
}
