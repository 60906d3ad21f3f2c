package lb

import (
	"slices"
	"strings"
)

// settle sorts the rows and makes one of those that claim the same address.
func settle(rows []Row) []Row {
	sortRows(rows)
	out := rows[:0]
	for i := 0; i < len(rows); {
		j := i + 1
		for j < len(rows) && rows[j].Address == rows[i].Address {
			j++
		}
		if j == i+1 {
			out = append(out, rows[i])
		} else {
			out = append(out, contend(rows[i:j]))
		}
		i = j
	}
	return out
}

// contend is one row for several claims. One Service may name an address
// twice, as externalIP and as ingress; of two owners the maps hold either.
// A node address's row yields to a frontend of its own there.
func contend(rows []Row) Row {
	first := rows[0]
	if i := slices.IndexFunc(rows, func(r Row) bool { return !r.Expansion && r.Optional == "" }); i >= 0 {
		first = rows[i]
	}
	claims := []Claim{}
	for _, r := range rows {
		if c := (Claim{r.Service, r.Type}); !slices.ContainsFunc(claims, func(o Claim) bool { return o.Service == c.Service }) {
			claims = append(claims, c)
		}
	}
	if len(claims) < 2 {
		return first
	}
	names := make([]string, len(claims))
	for i, c := range claims {
		names[i] = c.Type + " of " + c.Service.String()
	}
	first.Claims, first.Cause, first.Reason = claims, Contended, "claimed by "+strings.Join(names, " and ")
	first.Flags = Flags{}
	entries := map[Address]Entry{}
	for _, r := range rows {
		for _, e := range r.Entries {
			if _, ok := entries[e.Address]; !ok {
				e.Optional, e.State = first.Reason, ""
				entries[e.Address] = e
			}
		}
	}
	first.Entries = nil
	for _, e := range entries {
		first.Entries = append(first.Entries, e)
	}
	sortEntries(first.Entries)
	return first
}
