package cilium

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// DecodeMapCounts reads bpf-counts.yaml: rows of maps that somebody counted and
// did not keep, as "lb4_services_rows: 50112". The counts come sorted by name.
//
// Gaps are reported as *DecodeErrors together with what could be read.
func DecodeMapCounts(data []byte) ([]lb.MapCount, error) {
	var raw map[string]json.RawMessage
	if err := yaml.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("map counts: %w", err)
	}
	if len(raw) == 0 {
		return nil, fmt.Errorf("map counts: %w", ErrEmpty)
	}
	errs := DecodeErrors{Answer: "map counts"}
	counts := make([]lb.MapCount, 0, len(raw))
	for key, value := range raw {
		n, err := parseCount(string(value))
		m := countKey.FindStringSubmatch(key)
		if m == nil || err != nil {
			errs.add(0, key+": "+string(value), "no number of rows")
			continue
		}
		counts = append(counts, lb.MapCount{Name: m[1], Rows: n})
	}
	slices.SortFunc(counts, func(a, b lb.MapCount) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Rows, b.Rows)) })
	slices.SortFunc(errs.Errors, func(a, b *LineError) int { return cmp.Compare(a.Text, b.Text) })
	if len(errs.Errors) > 0 {
		return counts, &errs
	}
	return counts, nil
}

var countKey = regexp.MustCompile(`^(?:cilium_)?([a-z0-9_]+?)(?:_v[0-9])?_rows$`)
