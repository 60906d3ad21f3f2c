package captures

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"regexp"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// logLines is how much of a log a fixture keeps. A quiet agent writes that much
// in about a minute.
const logLines = 100

// lastLines is the tail of a log, in whole lines.
func lastLines(data []byte, n int) []byte {
	end := bytes.TrimSuffix(data, []byte("\n"))
	for at := len(end); n > 0; n-- {
		at = bytes.LastIndexByte(end[:at], '\n')
		if at < 0 {
			return data
		}
		if n == 1 {
			return data[at+1:]
		}
	}
	return nil
}

var (
	initLogFile = regexp.MustCompile(`^init-(.+)-logs\.txt$`)
	podHeading  = regexp.MustCompile(`(?m)^== pod/(\S+)\n`)
)

// initLogs takes a recording's logs of one init container apart: it holds
// those of all agents in one file, each below a heading with the pod's name.
// The recorded pods say on which node a pod is.
func (b *build) initLogs() error {
	names, err := fs.Glob(b.rec, "init-*-logs.txt")
	if err != nil {
		return err
	}
	spec, ok := source.SpecOf(source.InitLog)
	if !ok || len(spec.Forms) == 0 {
		return fmt.Errorf("%s: no such topic", source.InitLog)
	}
	for _, name := range names {
		container := initLogFile.FindStringSubmatch(name)[1]
		data, err := fs.ReadFile(b.rec, name)
		if err != nil {
			return err
		}
		heads := podHeading.FindAllSubmatchIndex(data, -1)
		if len(heads) == 0 {
			return fmt.Errorf("%s: no heading with a pod's name", name)
		}
		for i, h := range heads {
			end := len(data)
			if i+1 < len(heads) {
				end = heads[i+1][0]
			}
			pod := string(data[h[2]:h[3]])
			node := b.nodeOf(pod)
			if node == "" {
				return fmt.Errorf("%s: pod %s is not among the recorded pods", name, pod)
			}
			b.started[node] = true
			part := data[h[1]:end]
			b.note(source.InitLog, part)
			q := source.Query{Topic: source.InitLog, Node: node, Arg: container}
			if err := b.take(q, spec.Forms[0], part, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// nodeOf is the node that a recorded pod runs on, "" if it is not recorded.
func (b *build) nodeOf(pod string) string {
	for _, o := range b.pods {
		if o.text("metadata", "name") == pod {
			return o.text("spec", "nodeName")
		}
	}
	return ""
}

var (
	stamp       = regexp.MustCompile(`\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z`)
	kubeVersion = regexp.MustCompile(`\bv\d+\.\d+\.\d+[\w.+-]*`)
)

// note learns from an answer when it was given and by which versions. Only
// answers that tell the time of the agent itself count: objects and
// certificates also bear times that were not now.
func (b *build) note(t source.Topic, data []byte) {
	switch t {
	case source.Status, source.AgentLog, source.InitLog:
		for _, s := range stamp.FindAll(data, -1) {
			at, err := time.Parse(time.RFC3339Nano, string(s))
			if err == nil && at.After(b.latest) {
				b.latest = at
			}
		}
	}
	var said object
	switch {
	case t == source.Status && b.kubernetes == "" && json.Unmarshal(data, &said) == nil:
		// The message reads "1.34 (v1.34.3) [linux/amd64]".
		b.kubernetes = kubeVersion.FindString(said.text("kubernetes", "msg"))
	case t == source.Version && json.Unmarshal(data, &said) == nil:
		if v := said.text("Daemon", "Version"); v != "" {
			b.cilium = v
		}
	}
}
