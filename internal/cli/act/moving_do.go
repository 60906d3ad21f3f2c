package act

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
)

// do shows the plan and where it stands, asks, and carries a stage out.
func (m *moving) do(ctx context.Context, id string, accept map[string]string) error {
	env := m.share.Env()
	engine, err := m.op.engine(m.plan.Kind, id, m.tell)
	if err != nil {
		return err
	}
	stand, err := engine.Stand(ctx, m.plan)
	if err != nil {
		return err
	}
	m.cluster.Clear()
	m.show(env.Out, stand)
	switch {
	case m.stage == 0:
		m.next(env.Out, stand)
		return nil
	case m.dryRun:
		_, _ = fmt.Fprintf(env.Out, "\ndry run: nothing was changed. Digest of the plan, for --approve:\n%s\n", m.plan.Digest())
		return nil
	}
	question := fmt.Sprintf("Do stage %d?", m.stage)
	if m.back {
		question = "Take it back?"
	}
	about := m.op.src.About()
	if err := m.confirm(ctx, env, proposal{
		Context: about.Context, Server: about.Server, Nodes: len(m.in.Nodes), Digest: m.plan.Digest(), Question: question, TypeContext: m.back || m.stage == 2,
	}); err != nil {
		return err
	}
	verb := engine.Run
	if m.back {
		verb = engine.Rollback
	}
	o := plan.Options{Stages: []string{m.name()}, Accept: accept, Note: m.note}
	stand, err = verb(ctx, m.plan, o)
	if err == nil && (m.stage == 3 || m.back && !stand.Begun()) {
		_, err = engine.Close(ctx, m.plan, plan.Options{Note: m.note})
	}
	m.result(env.Out, stand, err)
	return err
}

// show prints the stages of the plan, and where each step stands.
func (m *moving) show(w io.Writer, stand *plan.Stand) {
	marks := map[plan.State]string{plan.Waiting: "  ", plan.Complete: "✓ ", plan.Halfway: "… ", plan.GoingBack: "← "}
	for i := range stand.Stages {
		s := &stand.Stages[i]
		if m.stage > 0 && !m.back && s.Name != m.name() {
			continue
		}
		_, _ = fmt.Fprintf(w, "%s", m.share.Signs(fmt.Sprintf("stage %s: %s\n", s.Name, s.State)))
		for j := range s.Steps {
			x := &s.Steps[j]
			_, _ = fmt.Fprint(w, m.share.Signs(fmt.Sprintf("  %s%-14s %s\n", marks[x.State], x.Step.Key(), clean(x.Step.Doc))))
			if x.State != plan.Complete && x.Step.Risk != "" {
				_, _ = fmt.Fprintf(w, "                   risk: %s\n", clean(x.Step.Risk))
			}
			if x.Failed != "" {
				_, _ = fmt.Fprintf(w, "                   stopped: %s\n", clean(x.Failed))
			}
		}
	}
}

// next says what to type.
func (m *moving) next(w io.Writer, stand *plan.Stand) {
	for i := range stand.Stages {
		switch stand.Stages[i].State {
		case plan.Complete:
			continue
		case plan.GoingBack:
			_, _ = fmt.Fprintln(w, "\na rollback has begun. Go on with it: kubectl kpr rollback")
			return
		}
		more := ""
		if stand.Opening == nil && m.wishes.Chart != "" {
			more = " --chart " + m.wishes.Chart
		}
		_, _ = fmt.Fprintf(w, "\nnext:  kubectl kpr migrate --stage %s%s\n", stand.Stages[i].Name, more)
		return
	}
}

// tell says each phase as it begins, on standard error.
func (m *moving) tell(p plan.Progress) {
	m.cluster.Clear()
	at := "stage " + p.Stage
	if p.Step != "" {
		at = p.Step
	}
	line := fmt.Sprintf("%s  %-14s %s", m.share.Env().Now().Format("15:04:05"), at, p.Phase)
	if p.Text != "" {
		line += ": " + clean(p.Text)
	}
	_, _ = fmt.Fprintln(m.share.Env().ErrOut, line)
}

// result says how it ended, and which direction is safe.
func (m *moving) result(w io.Writer, stand *plan.Stand, err error) {
	switch {
	case err == nil && m.back && !stand.Begun():
		_, _ = fmt.Fprintln(w, "taken back and verified; the journal is closed. What in Git, values and configuration of hosts still says KPR would apply it again")
	case err == nil && m.back:
		_, _ = fmt.Fprintln(w, "taken back and verified: kube-proxy serves beside KPR again")
	case err == nil && m.stage == 3:
		_, _ = fmt.Fprintln(w, "verified; the migration is closed")
	case err == nil:
		_, _ = fmt.Fprintf(w, "stage %d is done and verified\n", m.stage)
		m.next(w, stand)
	case errors.Is(err, plan.ErrHalfway):
		_, _ = fmt.Fprintln(w, "next:  kubectl kpr rollback")
	case stand != nil && stand.Begun():
		_, _ = fmt.Fprintln(w, "it stopped where it is, and no other node was touched. Forward: mend what is named and run the same command. Back: kubectl kpr rollback")
	}
}
