package sysdump

import (
	"bufio"
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// collectorLog is what cilium-sysdump.log tells of the collection.
type collectorLog struct {
	there   bool
	version string // of cilium-cli, "v0.16.20"
	quick   bool
	nodes   string // --node-list
	failed  []string
	noHome  bool // the collector did not find Cilium's namespace
}

var collectedBy = regexp.MustCompile(`cilium-cli version: (\S{1,40}?),? args: \[([^\n]{0,900})\]`)

func (s *Source) readLog() collectorLog {
	var l collectorLog
	data := s.archive.one(path.Join(s.root, "cilium-sysdump.log"))
	if l.there = len(data) > 0; !l.there {
		return l
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	tasks := false
	for lines.Scan() {
		text := lines.Text()
		if m := collectedBy.FindStringSubmatch(text); m != nil {
			l.version = m[1]
			l.quick = strings.Contains(m[2], "--quick")
			if _, rest, ok := strings.Cut(m[2], "--node-list"); ok {
				l.nodes, _, _ = strings.Cut(strings.TrimLeft(rest, "= "), " ")
			}
		}
		if strings.Contains(text, "an empty namespace may not be set") || strings.Contains(text, "Failed to detect Cilium installation") {
			l.noHome = true
		}
		if tasks && len(l.failed) < 100 {
			l.failed = append(l.failed, strings.TrimLeft(text, "⚠️ "))
		}
		tasks = tasks || strings.Contains(text, "The following tasks failed")
	}
	return l
}

// readVersion is the Kubernetes version, "" if the dump does not tell it.
func (s *Source) readVersion() string {
	text := strings.TrimSpace(string(s.archive.one(s.file("k8s-version", ".txt"))))
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n\"{},:", r) }) {
		if strings.HasPrefix(word, "v1.") && len(word) < 40 {
			return word
		}
	}
	return ""
}

func (l collectorLog) tool() string {
	if l.version == "" {
		return ""
	}
	return "cilium-cli " + bounded(l.version)
}

// why says why a file of the top is not there.
func (l collectorLog) why(stem, since string) string {
	switch {
	case since != "" && older(l.version, since):
		return fmt.Sprintf("cilium-cli %s did not collect it, %s and later do", bounded(l.version), since)
	case stem == "cilium-configmap" && l.noHome:
		return "the collector did not find Cilium's namespace"
	}
	for _, f := range l.failed {
		if strings.Contains(strings.ToLower(f), strings.ReplaceAll(strings.TrimPrefix(stem, "k8s-"), "-", " ")) {
			return "its collection failed: " + bounded(f)
		}
	}
	if since != "" && l.version == "" {
		return fmt.Sprintf("not in the dump; cilium-cli collects it since %s, and the version that made this one is not known", since)
	}
	return "not in the dump"
}

// noFolder says why nothing was collected of a node.
func (l collectorLog) noFolder() string {
	switch {
	case l.quick:
		return "the dump was made with --quick: nothing of the nodes was collected"
	case l.nodes != "":
		return "the dump was made with --node-list, and the node is not in it"
	}
	for _, f := range l.failed {
		if strings.Contains(f, "bugtool") {
			return "nothing was collected of the node: " + bounded(f)
		}
	}
	return "nothing was collected of the node: no agent pod ran there, or the collection failed"
}

// older compares versions of cilium-cli; what is not known is not older.
func older(version, than string) bool {
	a, b := numbers(version), numbers(than)
	for i := range b {
		if len(a) != len(b) {
			return false
		}
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

var threeNumbers = regexp.MustCompile(`^v?([0-9]{1,6})\.([0-9]{1,6})\.([0-9]{1,6})`)

func numbers(version string) []int {
	m := threeNumbers.FindStringSubmatch(version)
	if m == nil {
		return nil
	}
	var out []int
	for _, s := range m[1:] {
		n, _ := strconv.Atoi(s)
		out = append(out, n)
	}
	return out
}
