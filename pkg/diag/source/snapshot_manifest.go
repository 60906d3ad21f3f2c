package source

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

const manifestFile = "snapshot.yaml"

// SchemaVersion is the version of the snapshot format: the field schema of
// snapshot.yaml.
const SchemaVersion = 1

// manifest is snapshot.yaml. Fields are only added within one schema, and a
// reader leaves alone what it does not know.
type manifest struct {
	Schema     int          `json:"schema"`
	Tool       string       `json:"tool,omitempty"`
	Version    string       `json:"version,omitempty"` // of the tool
	Started    time.Time    `json:"started,omitzero"`
	Ended      time.Time    `json:"ended,omitzero"`
	Context    string       `json:"context,omitempty"`
	Server     string       `json:"server,omitempty"`
	Kubernetes string       `json:"kubernetes,omitempty"`
	Cilium     []string     `json:"cilium,omitempty"`
	Redacted   bool         `json:"redacted,omitempty"` // names and addresses are not the cluster's
	Nodes      []nodeRecord `json:"nodes,omitempty"`
	NodesGap   *Gap         `json:"nodesGap,omitempty"` // why Nodes may not be all
	Members    []Recorded   `json:"members,omitempty"`
	Gaps       []Gap        `json:"gaps,omitempty"`
}

type nodeRecord struct {
	Name   string `json:"name"`
	Reason string `json:"reason,omitempty"`
}

// Recorded is one file of a snapshot: which query it answers and where it was
// read. SHA256 is in hexadecimal and Size in bytes, both of the file.
type Recorded struct {
	Path   string    `json:"path"`
	Topic  Topic     `json:"topic"`
	Node   string    `json:"node,omitempty"`
	Arg    string    `json:"arg,omitempty"`
	Origin string    `json:"origin,omitempty"`
	Exit   int       `json:"exit,omitempty"`
	Read   time.Time `json:"read,omitzero"`
	Size   int64     `json:"size"`
	SHA256 string    `json:"sha256,omitempty"`
}

// Gap is a query that got no answer.
type Gap struct {
	Topic  Topic  `json:"topic"`
	Node   string `json:"node,omitempty"`
	Arg    string `json:"arg,omitempty"`
	Class  Class  `json:"class"`
	Reason string `json:"reason"`
}

// Class is one of the errors of a Source, in a word.
type Class string

// The classes of gaps.
const (
	Absent      Class = "absent"
	Forbidden   Class = "forbidden"
	Unreachable Class = "unreachable"
	AgentDown   Class = "agent-down"
	Cut         Class = "cut"
)

// ClassOf is the class of an error of a Source. An error that wraps none of
// the four, which a Source should not give, counts as unreachable: nothing is
// known then, least of all that the thing is not there. ClassOf(nil) is "".
func ClassOf(err error) Class {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrAbsent):
		return Absent
	case errors.Is(err, ErrForbidden):
		return Forbidden
	case errors.Is(err, ErrCut):
		return Cut
	case errors.Is(err, ErrAgentDown):
		return AgentDown
	}
	return Unreachable
}

// err is the error of a class; a word that is none is as unknown as can be.
func (c Class) err() error {
	switch c {
	case Absent:
		return ErrAbsent
	case Forbidden:
		return ErrForbidden
	case Cut:
		return ErrCut
	case AgentDown:
		return ErrAgentDown
	}
	return ErrUnreachable
}

// gapError is the error for one query. It wraps its class and no other.
type gapError struct {
	query  Query
	class  error
	reason string
	cause  error // nil, or the context's error
}

func (e *gapError) Error() string {
	switch {
	case e.reason == "":
		return subject(e.query) + ": " + e.class.Error()
	case strings.Contains(e.reason, e.class.Error()):
		return subject(e.query) + ": " + e.reason
	}
	return subject(e.query) + ": " + e.class.Error() + ": " + e.reason
}

func (e *gapError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.class}
	}
	return []error{e.class, e.cause}
}

// reasonOf is an error's text without what a Gap has in fields of its own, so
// that a snapshot of a snapshot says what the first one said.
func reasonOf(q Query, err error) string {
	if g, ok := errors.AsType[*gapError](err); ok {
		return g.reason
	}
	return strings.TrimPrefix(err.Error(), subject(q)+": ")
}

// subject names what was asked: "init-log (config) on n1".
func subject(q Query) string {
	s := string(q.Topic)
	if q.Arg != "" {
		s += fmt.Sprintf(" (%.100s)", q.Arg)
	}
	if q.Node != "" {
		s += fmt.Sprintf(" on %.253s", q.Node)
	}
	return s
}

func parseManifest(data []byte) (manifest, error) {
	var m manifest
	if err := unmarshal(data, &m); err != nil {
		return manifest{}, err
	}
	if m.Schema > SchemaVersion {
		return manifest{}, fmt.Errorf("schema %d is newer than this version of the tool, which knows %d", m.Schema, SchemaVersion)
	}
	return m, nil
}

func (m manifest) marshal() ([]byte, error) { return yaml.Marshal(m) }

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
