package write

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Clock tells the API server's time by its last answer, to the second. It is
// safe for concurrent use.
type Clock struct {
	now  func() time.Time
	mu   sync.Mutex
	skew time.Duration
	seen bool
}

// NewClock watches the answers to all clients that are made of config from now
// on. now is the client's own clock.
func NewClock(config *rest.Config, now func() time.Time) *Clock {
	c := &Clock{now: now}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &dated{c, next} })
	return c
}

// Server is the API server's time; false before its first answer.
func (c *Clock) Server() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now().Add(c.skew).Truncate(time.Second), c.seen
}

type dated struct {
	clock *Clock
	next  http.RoundTripper
}

// RoundTrip is part of http.RoundTripper.
func (d *dated) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.next.RoundTrip(r)
	if err != nil {
		return resp, err
	}
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		d.clock.mu.Lock()
		d.clock.skew, d.clock.seen = at.Sub(d.clock.now()), true
		d.clock.mu.Unlock()
	}
	return resp, nil
}
