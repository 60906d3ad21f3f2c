package distro

import "encoding/json"

// parseArgs reads the JSON array of strings that k3s and RKE2 put into the
// annotation; nil where it is none.
func parseArgs(text string) []string {
	var args []string
	if json.Unmarshal([]byte(text), &args) != nil {
		return nil
	}
	return args
}
