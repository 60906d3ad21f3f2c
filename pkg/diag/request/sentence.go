package request

import (
	"fmt"
	"slices"
	"strings"
)

// Fails holds for a path whose failure counts: all but those that fail by
// design while another path of the client to the same Service is answered.
func (p *Probe) Fails(path *Path) bool {
	if path.State != Failed && path.State != Some {
		return false
	}
	if !path.ByDesign() {
		return true
	}
	return !p.Matrix && !slices.ContainsFunc(p.Paths, func(o Path) bool {
		return o.State == OK && o.Client == path.Client && o.Service == path.Service
	})
}

// ByDesign holds where nothing was to answer this client, and nothing did.
func (p *Path) ByDesign() bool {
	return p.Good == 0 && (p.Predicted.State == "stops" || p.Predicted.State == "excluded")
}

// Denied is the first denial by a policy among what agents saw.
func (p *Path) Denied() (Event, bool) {
	i := slices.IndexFunc(p.Events, func(e Event) bool { return e.Denied })
	if i < 0 {
		return Event{}, false
	}
	return p.Events[i], true
}

// Sentence is the answer before the evidence.
func (p *Probe) Sentence() string {
	var bad, unknown []*Path
	design := 0
	for i := range p.Paths {
		switch path := &p.Paths[i]; {
		case path.State == Unknown:
			unknown = append(unknown, path)
		case p.Fails(path):
			bad = append(bad, path)
		case path.ByDesign():
			design++
		}
	}
	n := len(p.Paths)
	switch {
	case n == 0:
		return p.Target + ": no address that can be dialled from there"
	case len(bad) > 0:
		worst := bad[0]
		for _, b := range bad {
			if b.State == Failed && worst.State != Failed {
				worst = b
			}
		}
		s := fmt.Sprintf("%s: %s", worst.title(), worst.Text)
		if len(bad) > 1 {
			s += fmt.Sprintf("; and %d more of %d paths fail", len(bad)-1, n)
		} else if n > 1 {
			s += fmt.Sprintf("; the other %s", p.rest(n-1-len(unknown)-design, len(unknown), design))
		}
		return s
	case len(unknown) == n && n == 1, len(unknown) == n && same(unknown):
		return fmt.Sprintf("%s: not known: %s", unknown[0].title(), unknown[0].Text)
	case len(unknown) > 0:
		return fmt.Sprintf("%s: %s; %s: %s", p.Target, p.rest(n-len(unknown)-design, len(unknown), design), unknown[0].title(), unknown[0].Text)
	case n == 1 && design == 0:
		return fmt.Sprintf("%s: %s%s", p.Paths[0].title(), p.Paths[0].Text, p.Paths[0].by())
	}
	return fmt.Sprintf("%s: %s", p.Target, p.rest(n-design, 0, design))
}

func same(paths []*Path) bool {
	return !slices.ContainsFunc(paths, func(o *Path) bool { return o.Text != paths[0].Text })
}

// rest counts the paths that are not spoken of.
func (p *Probe) rest(good, unknown, design int) string {
	var words []string
	if good > 0 {
		words = append(words, fmt.Sprintf("%s answered every request", paths(good)))
	}
	if design > 0 {
		words = append(words, fmt.Sprintf("%d serve no client there, by design", design))
	}
	if unknown > 0 {
		words = append(words, fmt.Sprintf("%d not known", unknown))
	}
	return strings.Join(words, ", ")
}

func paths(n int) string {
	if n == 1 {
		return "1 path"
	}
	return fmt.Sprintf("%d paths", n)
}

// title names the path: "shop/web 10.96.0.10:80/TCP from pod shop/a on w-1".
func (p *Path) title() string {
	s := strings.TrimSpace(p.Service+" "+p.Address.String()) + "/" + p.Protocol + " from " + p.Client.String()
	if p.Client.Kind == "pod" {
		s += " on " + p.Client.Node
	}
	if p.Client.StandIn {
		s += " (a stand-in: to policies another client)"
	}
	return s
}

// by is who translated and who answered.
func (p *Path) by() string {
	s := ""
	if p.Mechanism != "" {
		s = ", translated by " + p.Mechanism
	}
	if len(p.Spread) == 1 {
		s += ", by " + p.Spread[0].name()
	} else if len(p.Spread) > 1 {
		s += fmt.Sprintf(", by %d backends", len(p.Spread))
	}
	return s
}

func (s Share) name() string {
	if s.Pod != "" {
		return s.Pod + " (" + s.Address.String() + ")"
	}
	return s.Address.String()
}
