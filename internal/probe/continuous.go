package probe

import (
	"context"
	"sync"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/request"
)

// Bounds of what is kept of a watch: tries of a path, those that failed and
// those that did not.
const (
	keptBad  = 500
	keptGood = 500
	again    = time.Second     // until a lost place is entered again
	entering = 5 * time.Second // how long that may take
)

// Running is requests that go on.
type Running struct {
	prober *Prober
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu    sync.Mutex
	paths []request.Path
	tally []tally
	ended bool
}

// tally is what is known of a path so far.
type tally struct {
	good, bad         int
	keptGood, keptBad int
	last              time.Time // when it was well: the last answer, or the beginning
	failing           bool
	seen              time.Time // the last outcome
	longest           request.Gap
	blind             time.Time // since when nobody asks, zero if somebody does
	dark              time.Duration
}

// Start makes requests on all paths at a time, each again after Gap, for Long or
// until Stop. A place that is lost is entered again; meanwhile its paths are
// blind, which is neither well nor failed.
func (p *Prober) Start(ctx context.Context, paths []request.Path, clients []Client) *Running {
	ctx, cancel := context.WithTimeout(ctx, p.Long+p.pace().timeout+30*time.Second)
	r := &Running{prober: p, cancel: cancel, paths: append([]request.Path(nil), paths...)}
	begun := p.Now()
	r.tally = make([]tally, len(r.paths))
	for i := range r.tally {
		r.tally[i] = tally{last: begun, blind: begun}
	}
	for _, c := range clients {
		var mine []int
		for i := range r.paths {
			if r.paths[i].Client.String() == c.String() {
				mine = append(mine, i)
			}
		}
		if len(mine) > 0 {
			r.done.Go(func() { r.from(ctx, c, mine, begun.Add(p.Long)) })
		}
	}
	return r
}

// from keeps one client asking until the time is over.
func (r *Running) from(ctx context.Context, c Client, mine []int, end time.Time) {
	r.mu.Lock()
	var paths []*request.Path
	for _, i := range mine {
		paths = append(paths, &r.paths[i])
	}
	orders, sent := r.prober.orders(paths)
	r.mu.Unlock()
	var at []int // the path of each order
	for _, s := range sent {
		for _, i := range mine {
			if s == &r.paths[i] {
				at = append(at, i)
			}
		}
	}
	for ctx.Err() == nil && len(orders) > 0 {
		left := end.Sub(r.prober.Now())
		if left < time.Second {
			return
		}
		pace := r.prober.pace()
		pace.tries, pace.long = 1<<30, left
		pl := r.prober.placeOf(c, true)
		open := map[[2]int]request.Try{}
		err := pl.dial(ctx, pace, orders, func(t told) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.take(at[t.order], t, orders[t.order], open)
		})
		r.mu.Lock()
		for _, i := range at {
			r.paths[i].Client.Via = pl.client.Via
			if err != nil {
				r.tally[i].lost(r.prober.Now())
				if r.tally[i].good+r.tally[i].bad == 0 {
					r.paths[i].Text = words(err)
				}
			}
		}
		r.mu.Unlock()
		if err == nil {
			return
		}
		timer := time.NewTimer(again)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
	}
}

// take notes a line; an outcome counts once, when the try is over.
func (r *Running) take(i int, t told, o order, open map[[2]int]request.Try) {
	if r.ended {
		return
	}
	path := &r.paths[i]
	key := [2]int{t.order, t.try}
	try := open[key]
	note(&try, t, path, o)
	if t.word == "open" && !try.OK { // the answer is still to come
		open[key] = try
		return
	}
	delete(open, key)
	try.At = r.prober.Now()
	r.tally[i].count(try)
	switch {
	case try.OK && r.tally[i].keptGood < keptGood:
		r.tally[i].keptGood++
		path.Tries = append(path.Tries, try)
	case !try.OK && r.tally[i].keptBad < keptBad:
		r.tally[i].keptBad++
		path.Tries = append(path.Tries, try)
	}
}

func (t *tally) count(try request.Try) {
	if !t.blind.IsZero() {
		// That a place takes a moment to be entered at first is no blindness.
		if dark := try.At.Add(-try.Took).Sub(t.blind); !t.seen.IsZero() || dark > entering {
			t.dark += max(0, dark)
		}
		t.last, t.blind = try.At.Add(-try.Took), time.Time{}
	}
	t.seen = try.At
	if !try.OK {
		t.bad++
		t.failing = true
		return
	}
	t.good++
	t.close(try.At, false)
	t.last = try.At
}

// close ends a stretch without answers.
func (t *tally) close(at time.Time, open bool) {
	if gap := at.Sub(t.last); t.failing && gap > t.longest.Length {
		t.longest = request.Gap{From: t.last, Length: gap, Open: open}
	}
	t.failing = open && t.failing
}

// lost begins a time in which nobody asks.
func (t *tally) lost(at time.Time) {
	if t.blind.IsZero() {
		if t.failing {
			t.close(t.seen, false)
		}
		t.blind = at
	}
}

// Wait returns when the time is over, or ctx was.
func (r *Running) Wait() { r.done.Wait() }

// Stop ends the requests and gives the paths as they were: failures, the longest
// gap of each, and for how long nobody could ask.
func (r *Running) Stop() []request.Path {
	r.cancel()
	r.done.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.prober.Now()
	for i := range r.paths {
		path, t := &r.paths[i], &r.tally[i]
		if r.ended {
			continue
		}
		if t.failing {
			t.close(t.seen, true)
		}
		if path.Blind = t.dark; !t.blind.IsZero() {
			path.Blind += now.Sub(t.blind)
		}
		if t.longest.Length > 0 {
			gap := t.longest
			path.Gap = &gap
		}
		if t.good+t.bad == 0 && path.State == "" && path.Text != "" {
			path.State = request.Unknown
		}
		request.JudgeCounted(path, t.good, t.bad)
	}
	r.ended = true
	return r.paths
}
