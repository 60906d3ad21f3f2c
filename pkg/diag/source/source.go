// Package source is the one door through which everything the tool learns
// comes in. A Source answers Queries with Artifacts: the bytes as read, with
// the place they were read from. A running cluster, a snapshot and a cilium
// sysdump each are a Source, and nothing above this package can tell which one
// it has.
package source

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Why a query got no artifact. Errors of a Source wrap exactly one of these.
var (
	// ErrAbsent: the thing is not there, or this source never holds it.
	ErrAbsent = errors.New("not there")
	// ErrForbidden: the user may not read it; the error names verb and resource.
	ErrForbidden = errors.New("forbidden")
	// ErrUnreachable: the node, agent or API server did not answer in time.
	ErrUnreachable = errors.New("unreachable")
	// ErrAgentDown is an ErrUnreachable: the command ran on the node, and no
	// agent answered it.
	ErrAgentDown = fmt.Errorf("the agent does not answer: %w", ErrUnreachable)
	// ErrCut: an answer came but is not whole, so it must not be read.
	ErrCut = errors.New("cut off")
)

// Query asks for one topic: of the cluster when Node is empty, else of that
// node. Arg narrows a topic that takes one, such as a Service's name.
type Query struct {
	Topic Topic
	Node  string
	Arg   string
}

// Format says how an artifact's data is to be read.
type Format string

// The formats of artifacts.
const (
	Text Format = "text"
	JSON Format = "json"
	YAML Format = "yaml"
)

// Artifact is a piece of evidence as it was read.
type Artifact struct {
	Query  Query
	Format Format
	Data   []byte
	// Stem is the form of the topic that was read, see Form.
	Stem string
	// Origin is where it was read: an argv in an agent, an API path or an
	// archive member. It is printed as proof beside findings.
	Origin string
	Read   time.Time
	// Exit is the exit code of the command, 0 for everything else. Some
	// commands print an answer and fail all the same.
	Exit int
}

// Node is a node that a source knows of.
type Node struct {
	Name string
	// Reason says why there is no agent to ask on the node, "" if there is one.
	Reason string
}

// About says what a source is, for the first line of every report.
type About struct {
	Kind     string    `json:"kind"`              // cluster, snapshot, sysdump; files for what no source has read
	Name     string    `json:"name"`              // context or path
	Server   string    `json:"server,omitempty"`  // URL of the API server
	Context  string    `json:"context,omitempty"` // kubeconfig context it was, or had been, read by
	Version  string    `json:"kubernetes,omitempty"`
	Cilium   []string  `json:"cilium,omitempty"`   // versions, where a recording tells them
	Recorded time.Time `json:"recorded,omitzero"`  // when the evidence was read; zero if unknown
	Tool     string    `json:"tool,omitempty"`     // version of the tool that recorded it
	Redacted bool      `json:"redacted,omitempty"` // names and addresses are not those of the cluster
}

// Source answers queries. Implementations are safe for one Collect at a time.
type Source interface {
	// About describes the source. It makes no request.
	About() About
	// Nodes lists the nodes, sorted by name.
	Nodes(ctx context.Context) ([]Node, error)
	// Collect answers each query exactly once, in any order, never calling
	// yield concurrently. An error given to yield comes with an Artifact whose
	// Query is set and, where something was read, its Data. Collect itself
	// fails only when nothing at all could be asked.
	Collect(ctx context.Context, qs []Query, yield func(Artifact, error)) error
	// Again is a source that reads anew; false where nothing can change.
	Again() (Source, bool)
}

// Everything is one query for each topic of the cluster and of each node: what
// a recording holds.
func Everything(nodes []Node) []Query {
	var qs []Query
	for _, spec := range Topics() {
		switch {
		case spec.TakesArg() && spec.Arg == "", spec.Summary:
		case !spec.Node:
			qs = append(qs, Query{Topic: spec.Topic, Arg: spec.Arg})
		default:
			for _, n := range nodes {
				qs = append(qs, Query{Topic: spec.Topic, Node: n.Name, Arg: spec.Arg})
			}
		}
	}
	return qs
}
