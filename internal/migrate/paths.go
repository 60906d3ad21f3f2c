package migrate

import (
	"fmt"
	"strings"
)

func put(tree map[string]any, path string, v any) {
	head, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		tree[head] = v
		return
	}
	below, ok := tree[head].(map[string]any)
	if !ok {
		below = map[string]any{}
		tree[head] = below
	}
	put(below, rest, v)
}

// at is the value at a path, as the chart would print it.
func at(tree map[string]any, path string) (string, bool) {
	head, rest, deeper := strings.Cut(path, ".")
	v, ok := tree[head]
	if !ok || v == nil {
		return "", false
	}
	if !deeper {
		return fmt.Sprint(v), true
	}
	below, ok := v.(map[string]any)
	if !ok {
		return "", false
	}
	return at(below, rest)
}

// set holds where the values have everything of the change already.
func set(values map[string]any, want map[string]any) bool {
	for path, v := range want {
		if got, ok := at(values, path); !ok || got != fmt.Sprint(v) {
			return false
		}
	}
	return true
}
