package act

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
	"github.com/kubectl-kpr/kubectl-kpr/internal/residue"
	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
)

// result is what became of a plan, as JSON.
type result struct {
	Schema  string       `json:"schema"`
	Verb    string       `json:"verb"` // clean, restore, undo
	Context string       `json:"context"`
	Server  string       `json:"server"`
	Digest  string       `json:"digest"`
	Journal string       `json:"journal"` // namespace/name of its index
	Done    bool         `json:"done"`
	Closed  bool         `json:"closed"` // by somebody else, before this run
	Error   string       `json:"error,omitempty"`
	Nodes   []nodeResult `json:"nodes"`
}

type nodeResult struct {
	Node   string        `json:"node"`
	State  plan.State    `json:"state"`
	Backup *residue.Kept `json:"backup,omitempty"`
	Failed string        `json:"failed,omitempty"`
}

const resultSchema = "kubectl-kpr.residue-result/v1"

// tellResult says what was done, where the backup is and what to type next.
func (c *cleaning) tellResult(id, folder string, stand *plan.Stand, err error) {
	env, about := c.share.Env(), c.op.src.About()
	r := result{
		Schema: resultSchema, Verb: c.verb(), Context: about.Context, Server: about.Server, Digest: c.plan.Digest(),
		Journal: c.op.namespace + "/kpr-journal-" + id, Done: err == nil, Nodes: []nodeResult{},
	}
	if err != nil {
		r.Error = err.Error()
	}
	if stand != nil {
		r.Closed = stand.Closed && err != nil
		for i := range stand.Stages[0].Steps {
			s := &stand.Stages[0].Steps[i]
			n := nodeResult{Node: s.Step.Node, State: s.State, Failed: s.Failed}
			var k residue.Kept
			if s.Record != nil && json.Unmarshal(s.Record, &k) == nil {
				n.Backup = &k
			}
			r.Nodes = append(r.Nodes, n)
		}
	}
	if c.format == "json" {
		e := json.NewEncoder(env.Out)
		e.SetIndent("", "  ")
		_ = e.Encode(r)
		return
	}
	_, _ = io.WriteString(env.Out, c.share.Signs(r.text(folder, len(c.files) > 0)))
}

func (c *cleaning) verb() string {
	switch {
	case c.undo:
		return "undo"
	case len(c.files) > 0:
		return "restore"
	}
	return "clean"
}

func (r *result) text(folder string, restoring bool) string {
	var b strings.Builder
	states := map[plan.State]int{}
	chains, rows, tables := 0, 0, 0
	for _, n := range r.Nodes {
		states[n.State]++
		if n.Backup != nil && n.State == plan.Complete {
			chains, rows, tables = chains+n.Backup.Chains, rows+n.Backup.Rows, tables+n.Backup.Tables
		}
	}
	command := "kubectl kpr residue clean"
	if restoring {
		command = "kubectl kpr residue restore FILE..."
	}
	switch {
	case r.Done && r.Verb == "clean":
		fmt.Fprintf(&b, "✓ removed %s on %s, verified on each\n", amount(chains, rows, tables), words.Count(states[plan.Complete], "node"))
		fmt.Fprintf(&b, "backups: %s here, and on each node below /var/lib/kubectl-kpr; journal %s\n", clean(folder), r.Journal)
		fmt.Fprintf(&b, "next:    kubectl kpr residue --host --fail-on warning\nback:    kubectl kpr residue restore %s/*.json\n", clean(folder))
	case r.Done && r.Verb == "restore":
		fmt.Fprintf(&b, "✓ %s as in the backup, verified on each; journal %s\n", words.Count(states[plan.Complete], "node"), r.Journal)
	case r.Done:
		fmt.Fprintf(&b, "✓ taken back on every node that was changed, verified on each; journal %s\n", r.Journal)
	case r.Closed:
		fmt.Fprintf(&b, "✗ not begun: somebody else has finished this plan meanwhile, %d of %s done\njournal %s\nlook:    kubectl kpr residue\n", states[plan.Complete], words.Count(len(r.Nodes), "node"), r.Journal)
	default:
		fmt.Fprintf(&b, "✗ stopped: %d of %s done%s\n", states[plan.Complete], words.Count(len(r.Nodes), "node"), halves(states[plan.Halfway], states[plan.GoingBack]))
		fmt.Fprintf(&b, "journal %s\ngo on:     %s\ntake back: %s --undo\n", r.Journal, command, command)
	}
	return b.String()
}

// halves tells of nodes that are neither done nor untouched.
func halves(halfway, back int) string {
	text := ""
	if halfway > 0 {
		text += fmt.Sprintf(", %d halfway", halfway)
	}
	if back > 0 {
		text += fmt.Sprintf(", %d being taken back", back)
	}
	return text
}

// tellStand says where an open plan stands, before anything is asked.
func (c *cleaning) tellStand(id string, s *plan.Stand) {
	var b strings.Builder
	done, all := s.Count(plan.Complete)
	half, _ := s.Count(plan.Halfway)
	back, _ := s.Count(plan.GoingBack)
	fmt.Fprintf(&b, "a %s is open: %d of %s done%s\n", s.Opening.Kind, done, words.Count(all, "node"), halves(half, back))
	if n := len(s.Sessions); n > 0 {
		last := s.Sessions[n-1]
		fmt.Fprintf(&b, "journal %s/kpr-journal-%s, last worked on by %s at %s\n", c.op.namespace, id, clean(operatorOf(last)), last.Time.Format(time.RFC3339))
	}
	for i := range s.Stages[0].Steps {
		if x := &s.Stages[0].Steps[i]; x.State == plan.Halfway || x.State == plan.GoingBack {
			fmt.Fprintf(&b, "  %s is %s since %s %s\n", clean(x.Step.Node), x.State, x.Since.Format(time.RFC3339), clean(x.Failed))
		}
	}
	_, _ = io.WriteString(c.share.Env().ErrOut, b.String())
}

func operatorOf(e plan.Entry) string {
	if e.Operator == nil {
		return "nobody"
	}
	return e.Operator.User + " on " + e.Operator.Host
}
