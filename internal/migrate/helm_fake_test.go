package migrate

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// fakeHelm answers the commands that Helm uses.
type fakeHelm struct {
	version, status, values string
	revision, rollbacks     int
	history                 map[string]string
	file                    string
	calls                   [][]string
}

func (h *fakeHelm) run(_ context.Context, argv, env []string) ([]byte, error) {
	h.calls = append(h.calls, argv)
	if h.history == nil {
		h.history = map[string]string{fmt.Sprint(h.revision): h.values}
	}
	if !slices.Contains(env, "KUBECONFIG=/k") {
		return nil, fmt.Errorf("no kubeconfig in %q", env)
	}
	switch words := strings.Join(argv[1:3], " "); {
	case words == "get metadata":
		return json.Marshal(metadata{Chart: "cilium", Version: h.version, Revision: h.revision, Status: h.status})
	case words == "get values":
		if i := slices.Index(argv, "--revision"); i > 0 {
			return []byte(h.history[argv[i+1]]), nil
		}
		return []byte(h.values), nil
	case argv[1] == "upgrade":
		raw, err := os.ReadFile(argv[len(argv)-1])
		if err != nil {
			return nil, err
		}
		h.file = string(raw)
		merged := map[string]any{}
		_ = json.Unmarshal([]byte(h.values), &merged)
		if err := yaml.Unmarshal(raw, &merged); err != nil {
			return nil, err
		}
		out, err := json.Marshal(merged)
		if err != nil {
			return nil, err
		}
		h.next(string(out))
		return nil, nil
	case argv[1] == "rollback":
		h.rollbacks++
		h.next(h.history[argv[3]])
		return nil, nil
	}
	return nil, fmt.Errorf("unexpected %q", argv)
}

func (h *fakeHelm) next(values string) {
	h.revision++
	h.values, h.status = values, "deployed"
	h.history[fmt.Sprint(h.revision)] = values
}
