package distro

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// parseArgs reads the JSON array of strings that k3s and RKE2 put into the
// annotation; nil where it is none.
func parseArgs(text string) []string {
	var args []string
	if json.Unmarshal([]byte(text), &args) != nil {
		return nil
	}
	return args
}

// Args are the arguments that k3s and RKE2 write down on their node, nil where
// there are none.
func Args(n *corev1.Node) []string {
	for _, key := range []string{"k3s.io/node-args", "rke2.io/node-args"} {
		if text, ok := n.Annotations[key]; ok {
			return parseArgs(text)
		}
	}
	return nil
}

// Switched tells what the arguments of a server say of kube-proxy: off, and
// whether somebody tried to by an item of disable, which does nothing.
func Switched(args []string) (off, byList bool) {
	for i, a := range args {
		name, value, has := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if !has && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			value = args[i+1]
		}
		switch name {
		case "disable-kube-proxy":
			// A switch takes no word of its own: what follows may be another argument.
			off = !has && value != "true" && value != "false" || value == "true" || value == "1"
		case "disable", "no-deploy":
			byList = byList || slices.Contains(strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' }), "kube-proxy")
		}
	}
	return off, byList
}

// Values are what the arguments of k3s and RKE2 give a flag, those of a list
// one by one; ok tells whether it is there. A switch without a word is "true".
func Values(args []string, flag string) (values []string, ok bool) {
	for i, a := range args {
		name, value, has := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if name != flag || !strings.HasPrefix(a, "-") {
			continue
		}
		ok = true
		switch {
		case has:
		case i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			value = args[i+1]
		default:
			value = "true"
		}
		for word := range strings.SplitSeq(value, ",") {
			if word = strings.TrimSpace(word); word != "" {
				values = append(values, word)
			}
		}
	}
	return values, ok
}
