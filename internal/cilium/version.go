package cilium

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
)

// DecodeVersionText reads `version`: one line each for the command line tool
// and the running agent. An agent that does not answer gives ErrAgentDown
// together with the tool's version.
func DecodeVersionText(data []byte) (agent.Version, error) {
	v, a, err := versionText(data)
	if err != nil {
		return v, err
	}
	return v, a.err()
}

func versionText(data []byte) (v agent.Version, a *answer, down error) {
	a = newAnswer("version", data)
	for line, ok := a.next(); ok; line, ok = a.next() {
		who, value, _ := strings.Cut(line, ":")
		version, _ := cutWord(value)
		switch {
		case who == "Client" && version != "":
			v.Client = version
		case who == "Daemon" && notResponding(value):
			down = fmt.Errorf("version: %w: %s", ErrAgentDown, strings.TrimSpace(line))
		case who == "Daemon" && version != "":
			v.Daemon = version
		default:
			a.fail("neither the client's nor the daemon's version")
			continue
		}
		a.entry()
	}
	return v, a, down
}

func notResponding(value string) bool {
	return strings.Contains(strings.ToLower(value), "not responding")
}

// DecodeVersionJSON reads `version -o json`. The daemon's version is empty when
// no agent answered, which is ErrAgentDown as in the text form.
func DecodeVersionJSON(data []byte) (agent.Version, error) {
	d, err := openDocument("version", data)
	if err != nil {
		return agent.Version{}, err
	}
	if d == nil {
		return agent.Version{}, fmt.Errorf("version: %w", ErrEmpty)
	}
	var v agent.Version
	err = d.object(func(line int, key string, raw json.RawMessage) {
		var one struct{ Version string }
		switch key {
		case "Client":
			d.into(line, raw, &one)
			v.Client = one.Version
		case "Daemon":
			d.into(line, raw, &one)
			v.Daemon = one.Version
		}
	})
	switch {
	case err != nil:
		return v, err
	case v.Client != "" && v.Daemon == "":
		return v, fmt.Errorf("version: %w: daemon has no version", ErrAgentDown)
	case v == agent.Version{}:
		return v, fmt.Errorf("version: %w", ErrEmpty)
	}
	return v, nil
}
