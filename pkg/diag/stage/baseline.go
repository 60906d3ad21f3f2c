package stage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// BaselineSchema names the form of a baseline's JSON. Fields are only added
// within it.
const BaselineSchema = "kpr.baseline/v1"

// maxBaseline bounds what is read of a baseline's file.
const maxBaseline = 256 << 20

// Baseline is how a cluster was before the first step: what every checkpoint
// is compared with.
type Baseline struct {
	Schema   string             `json:"schema"`
	Time     time.Time          `json:"time"`
	Tool     string             `json:"tool"`
	Source   source.About       `json:"source"`
	Verdict  string             `json:"verdict"`  // of the preflight
	Findings []string           `json:"findings"` // their keys
	Restarts map[string]Restart `json:"restarts"` // of agents, by node
	Objects  []Group            `json:"objects"`
}

// Restart is how often the agent of a node had restarted.
type Restart struct {
	Pod   string `json:"pod"` // namespace/name
	Count int    `json:"count"`
}

// Group is the health of all objects of one resource.
type Group struct {
	Resource string `json:"resource"` // plural.group
	// Objects are by namespace/name.
	Objects map[string]Health `json:"objects,omitempty"`
	// Absent: the cluster has no such resource. Unread is why it could not be
	// listed, "" if it could.
	Absent bool   `json:"absent,omitempty"`
	Unread string `json:"unread,omitempty"`
}

// Health is the state of an object as its own status tells it.
type Health struct {
	Good  bool   `json:"good"`
	Words string `json:"words"` // "Ready=True", "2 of 3 ready", "Synced, Healthy"
}

// Write writes the baseline as JSON.
func (b *Baseline) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(b)
}

// ReadBaseline reads what Write has written. It fails where there is no such
// thing, or one of another schema.
func ReadBaseline(name string, r io.Reader) (*Baseline, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxBaseline+1))
	if err != nil {
		return nil, fmt.Errorf("baseline %s: %w", name, err)
	}
	if len(raw) > maxBaseline {
		return nil, fmt.Errorf("baseline %s: larger than %d MiB", name, maxBaseline>>20)
	}
	var b Baseline
	if err := json.Unmarshal(raw, &b); err != nil {
		return nil, fmt.Errorf("baseline %s: not written by preflight --save: %w", name, err)
	}
	if b.Schema != BaselineSchema {
		return nil, fmt.Errorf("baseline %s: schema %q, want %q; write one with kubectl kpr preflight --save FILE", name, b.Schema, BaselineSchema)
	}
	return &b, nil
}

// againstBaseline is the rule about objects that got worse.
var againstBaseline = &diag.Rule{
	Name: "baseline", Severity: diag.Error,
	Title: "something that was well before the migration is not any more",
	Doc: `Before the first step the state of the cluster's objects is written down: nodes, workloads, and whatever has a condition of its own, such as ExternalSecrets, Argo CD
Applications and backups. After each step the same objects are looked at again. One that was well and is not, or is gone, is taken for a consequence of the step until proven otherwise:
many of them talk to the API server or to each other through a Service.

What was broken before is not counted again, and replicas that scale do not count as long as all of those that are wanted are ready.`,
	Proof:  []string{"kubectl kpr verify --stage N --baseline FILE -o wide", "kubectl get RESOURCE -A"},
	Remedy: `Look at the object's own events first. If it cannot reach a Service, kubectl kpr trace tells which layer is behind. Take the step back when it does not recover.`,
}

// Compare is the check of the objects of now against those of a baseline.
func Compare(before *Baseline, now []Group) *diag.Check {
	return &diag.Check{
		Name:  againstBaseline.Name,
		Doc:   "whether objects are as well as they were before the migration",
		Scope: diag.OfCluster,
		Rules: []*diag.Rule{againstBaseline},
		Run: func(p *diag.Pass) error {
			for _, was := range before.Objects {
				i := slices.IndexFunc(now, func(g Group) bool { return g.Resource == was.Resource })
				switch {
				case was.Absent:
				case was.Unread != "":
					p.Note("%s: not in the baseline (%s)", was.Resource, was.Unread)
				case i < 0 || now[i].Absent:
					p.Find(againstBaseline, diag.Report{
						Subject: was.Resource, Severity: diag.Error,
						Message: fmt.Sprintf("the resource is gone from the API; the baseline has %d objects of it", len(was.Objects)),
					})
				case now[i].Unread != "":
					p.Unknown(fact.ID(was.Resource), errors.Join(source.ErrForbidden, errors.New(now[i].Unread)))
				default:
					compareGroup(p, before, was, now[i])
				}
			}
			return nil
		},
	}
}

func compareGroup(p *diag.Pass, before *Baseline, was, is Group) {
	for _, name := range sorted(was.Objects) {
		old, now := was.Objects[name], is.Objects[name]
		_, there := is.Objects[name]
		if !old.Good || now.Good {
			continue
		}
		message := fmt.Sprintf("%s; at %s it was %s", now.Words, before.Time.UTC().Format(time.RFC3339), old.Words)
		if !there {
			message = fmt.Sprintf("gone; at %s it was there and %s", before.Time.UTC().Format(time.RFC3339), old.Words)
		}
		p.Find(againstBaseline, diag.Report{Subject: was.Resource + "/" + name, Severity: diag.Error, Message: message})
	}
	for _, name := range sorted(is.Objects) {
		if _, old := was.Objects[name]; !old && !is.Objects[name].Good {
			p.Find(againstBaseline, diag.Report{Subject: was.Resource + "/" + name, Severity: diag.Warning, Message: "new since the baseline, and " + is.Objects[name].Words})
		}
	}
}

func sorted(m map[string]Health) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// noBackup is the rule about a migration that begins without a way back for
// what is stored.
var noBackup = &diag.Rule{
	Name: "backup", Severity: diag.Error,
	Title: "no fresh backup is there",
	Doc: `A migration of the network touches no stored data, and yet the day on which nothing can be reached is the wrong one to find out when the last backup was made. Only a backup
that Velero calls Completed counts, by its completionTimestamp, and only where somebody asked for it with --require-backup.`,
	Proof:  []string{"kubectl get backups.velero.io -A -o custom-columns=NAME:.metadata.name,PHASE:.status.phase,DONE:.status.completionTimestamp"},
	Remedy: `Make one (velero backup create NAME --wait) and run the preflight again.`,
}

// BackupRule is the rule about missing backups.
func BackupRule() *diag.Rule { return noBackup }
