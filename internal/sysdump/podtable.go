package sysdump

import (
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// podTable makes a list of Pods of `kubectl get pods -A -o wide`, the only
// form in which some dumps have them. Of a pod that is not ready it knows no
// more than the word of the table.
func podTable(text []byte) ([]byte, error) {
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	columns := tableColumns(lines[0])
	if columns["NAMESPACE"] == nil || columns["NAME"] == nil || columns["NODE"] == nil || columns["STATUS"] == nil {
		return nil, errors.New("not a wide table of pods")
	}
	items := []any{}
	for _, line := range lines[1:] {
		cell := func(name string) string {
			c := columns[name]
			if c == nil || c[0] >= len(line) {
				return ""
			}
			return strings.TrimSpace(line[c[0]:min(c[1], len(line))])
		}
		if cell("NAME") == "" {
			continue
		}
		items = append(items, podOf(cell))
	}
	return json.Marshal(map[string]any{"apiVersion": "v1", "kind": "PodList", "items": items})
}

// tableColumns are where the columns of a header begin and end.
func tableColumns(header string) map[string]*[2]int {
	columns := map[string]*[2]int{}
	var last *[2]int
	for _, m := range regexp.MustCompile(`\S+(?: \S+)*`).FindAllStringIndex(header, 64) {
		if last != nil {
			last[1] = m[0]
		}
		last = &[2]int{m[0], 1 << 20}
		columns[header[m[0]:m[1]]] = last
	}
	return columns
}

var (
	hashSuffix = regexp.MustCompile(`^(.+?)(?:-[0-9a-f]{8,10})?-[a-z0-9]{5}$`)
	phases     = map[string]string{"Running": "Running", "Pending": "Pending", "ContainerCreating": "Pending", "Completed": "Succeeded", "Succeeded": "Succeeded", "Error": "Failed", "Failed": "Failed", "Evicted": "Failed"}
)

func podOf(cell func(string) string) map[string]any {
	name, state := cell("NAME"), cell("STATUS")
	ready, all, _ := strings.Cut(cell("READY"), "/")
	restarts, _ := strconv.Atoi(strings.SplitN(cell("RESTARTS")+" ", " ", 2)[0])
	isReady := ready == all && state == "Running"
	phase, known := phases[state]
	if !known {
		phase = "Running" // CrashLoopBackOff and the like
	}
	metadata := map[string]any{"name": name, "namespace": cell("NAMESPACE")}
	container := "app"
	if m := hashSuffix.FindStringSubmatch(name); m != nil {
		switch m[1] {
		case "cilium", "anetd":
			metadata["labels"], container = map[string]string{"k8s-app": "cilium"}, "cilium-agent"
		case "kube-proxy":
			metadata["labels"], container = map[string]string{"k8s-app": "kube-proxy"}, "kube-proxy"
		}
	}
	status := map[string]any{"name": container, "ready": isReady, "restartCount": restarts, "state": map[string]any{"running": map[string]any{}}}
	if !known || phase == "Pending" {
		status["state"] = map[string]any{"waiting": map[string]any{"reason": state}}
	}
	condition := "False"
	if isReady {
		condition = "True"
	}
	spec := map[string]any{"containers": []any{map[string]any{"name": container}}}
	if node := cell("NODE"); node != "<none>" {
		spec["nodeName"] = node
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec,
		"status": map[string]any{"phase": phase, "podIP": strings.TrimPrefix(cell("IP"), "<none>"),
			"conditions": []any{map[string]any{"type": "Ready", "status": condition}}, "containerStatuses": []any{status}},
	}
}
