package probe

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/request"
)

// Prober makes requests from clients of one cluster.
type Prober struct {
	Agents    Agents
	Pods      Pods      // nil: no exec in pods
	Ephemeral Ephemeral // nil: no ephemeral containers
	Policies  Policies  // nil: denials are not given a policy's name
	Now       func() time.Time

	Tries   int           // of each path, 3 if zero
	Timeout time.Duration // of each request, 3 s if zero
	Gap     time.Duration // between the tries of a path
	// Long, if not zero, is for how long requests go on, whatever Tries says.
	Long time.Duration
	// HTTPPath is what GET asks for, "/" if "".
	HTTPPath string
	// Concurrency is how many places are asked at a time, 16 if zero.
	Concurrency int
	// Watch what agents drop and what policies decide meanwhile.
	Watch bool
}

func (p *Prober) pace() pace {
	at := pace{tries: p.Tries, timeout: p.Timeout, gap: p.Gap}
	if at.tries <= 0 {
		at.tries = 3
	}
	if at.timeout <= 0 {
		at.timeout = 3 * time.Second
	}
	return at
}

func (p *Prober) concurrency() int {
	if p.Concurrency > 0 {
		return p.Concurrency
	}
	return 16
}

// Run makes the requests of the paths and fills in what became of them. The
// clients are those of the paths, by the name of each. Whatever goes wrong with
// one place is its paths' own: Run fails only where ctx ends.
func (p *Prober) Run(ctx context.Context, paths []request.Path, clients []Client) error {
	at := p.pace()
	var watch *watch
	if p.Watch {
		watch = p.watchNodes(ctx, paths, at)
	}
	p.each(paths, clients, func(c Client, mine []*request.Path) { p.from(ctx, c, mine, at) })
	if watch != nil {
		watch.stop(paths)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	p.flows(ctx, paths)
	for i := range paths {
		request.Judge(&paths[i])
	}
	return nil
}

// each calls f for every client with its paths, a bounded number at a time.
func (p *Prober) each(paths []request.Path, clients []Client, f func(Client, []*request.Path)) {
	slots := make(chan struct{}, p.concurrency())
	var wg sync.WaitGroup
	for _, c := range clients {
		var mine []*request.Path
		for i := range paths {
			if paths[i].Client.String() == c.String() {
				mine = append(mine, &paths[i])
			}
		}
		if len(mine) == 0 {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			f(c, mine)
		})
	}
	wg.Wait()
}

// from makes one client's requests.
func (p *Prober) from(ctx context.Context, c Client, paths []*request.Path, at pace) {
	orders, sent := p.orders(paths)
	if len(orders) == 0 {
		return
	}
	pl := p.placeOf(c, false)
	over := map[[2]int]bool{} // tries whose end was told
	tries := make([][]request.Try, len(orders))
	for i := range tries {
		tries[i] = make([]request.Try, 0, at.tries)
	}
	err := pl.dial(ctx, at, orders, func(t told) {
		for len(tries[t.order]) <= t.try {
			tries[t.order] = append(tries[t.order], request.Try{})
		}
		note(&tries[t.order][t.try], t, sent[t.order], orders[t.order])
		over[[2]int{t.order, t.try}] = t.word != "open" || orders[t.order].kind == "tcp"
	})
	for i, path := range sent {
		path.Client.Via, path.Client.StandIn = pl.client.Via, pl.client.StandIn
		path.Tries = nil
		for k, try := range tries[i] { // one without an end is neither good nor bad
			if over[[2]int{i, k}] {
				path.Tries = append(path.Tries, try)
			}
		}
		if err != nil && len(path.Tries) < at.tries {
			path.State, path.Text = request.Unknown, words(err)
		}
	}
}

// orders are the paths that can be asked; the others are unknown, with the
// reason.
func (p *Prober) orders(paths []*request.Path) (orders []order, sent []*request.Path) {
	for _, path := range paths {
		o, err := p.order(path)
		if err != nil {
			path.State, path.Text = request.Unknown, err.Error()
			continue
		}
		orders, sent = append(orders, o), append(sent, path)
	}
	return orders, sent
}

func words(err error) string {
	s := strings.ReplaceAll(err.Error(), "\n", "; ")
	return strings.TrimSuffix(strings.ReplaceAll(s, ": "+errNoWay.Error(), ""), "; ")
}

func (p *Prober) order(path *request.Path) (order, error) {
	host := path.Address.Addr().String()
	name := host
	if path.Service != "" {
		namespace, svc, _ := strings.Cut(path.Service, "/")
		name = svc + "." + namespace + ".svc"
	}
	get := p.HTTPPath
	if get == "" {
		get = "/"
	}
	kind, data, err := payload(path.Ask, name, get)
	if err != nil {
		return order{}, fmt.Errorf("%s: %w", path.Ask, err)
	}
	if path.Protocol == "UDP" && kind != "send" || path.Protocol != "UDP" && kind == "send" {
		return order{}, fmt.Errorf("%s cannot be asked over %s", path.Ask, path.Protocol)
	}
	return order{kind: kind, host: host, port: path.Address.Port(), payload: data}, nil
}

// note puts what the dialer said into a try.
func note(try *request.Try, t told, path *request.Path, o order) {
	if t.local.IsValid() {
		try.Local, try.Backend = t.local, t.remote
	}
	switch t.word {
	case "open":
		try.Took = t.took
		try.OK = path.Ask == request.Connect
	case "reply":
		if o.kind == "send" {
			try.Took = t.took
		}
		line, err := answered(path.Ask, t.data)
		switch {
		case err == nil:
			try.OK, try.Answer, try.Error = true, line, ""
		case path.Guessed: // the guess was wrong, the way is right
			try.OK, try.Other, try.Answer = true, true, err.Error()
		default:
			try.Other, try.Error = true, err.Error()
		}
	case "late":
		try.Took, try.Late, try.Error = t.took, true, "no answer in time"
	case "failed":
		try.Took, try.Error = t.took, t.words
	}
}
