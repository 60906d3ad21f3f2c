package report

import (
	"fmt"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
)

// verdict is different before unknown, and unknown before the same.
func (c *comparison) verdict(o Options) Verdict {
	d := c.diff
	v := Verdict{Outcome: OK, ExitCode: ExitOK, FailOn: o.FailOn.String()}
	changes := c.words()
	missing := ""
	if n := len(d.Uncompared); n > 0 {
		missing = fmt.Sprintf("%s could not be compared", words.Count(n, "thing"))
	}
	switch {
	case len(changes) > 0:
		v.Outcome, v.ExitCode = Found, ExitFound
		v.Text = "different: " + strings.Join(changes, "; ")
		if missing != "" {
			v.Text += "; " + missing
		}
	case missing != "":
		v.Outcome, v.ExitCode = Unknown, ExitUnknown
		v.Text = "no difference in what can be compared; " + missing
	default:
		v.Text = "the same on " + all(len(c.both))
	}
	for _, f := range d.New {
		switch f.Severity {
		case "error":
			v.Errors++
		case "warning":
			v.Warnings++
		default:
			v.Infos++
		}
	}
	return v
}

// words count the changes, those first that a reader is afraid of.
func (c *comparison) words() []string {
	d := c.diff
	var out []string
	count := func(n int, one, many string) {
		if n == 1 {
			out = append(out, "1 "+one)
		} else if n > 1 {
			out = append(out, fmt.Sprintf("%d %s", n, many))
		}
	}
	count(len(d.New), "new finding", "new findings")
	count(len(d.Gone), "finding gone", "findings gone")
	count(len(d.Changed), "finding changed", "findings changed")
	for _, p := range d.Properties {
		if p.Property == kubeProxyProperty {
			out = append(out, fmt.Sprintf("kube-proxy is %s on %s", p.After, words.Count(len(p.Nodes), "node")))
		}
	}
	count(len(d.Came), "node came", "nodes came")
	count(len(d.Went), "node went", "nodes went")
	count(len(d.Properties), "property changed", "properties changed")
	count(len(d.Settings), "setting changed", "settings changed")
	count(len(d.Frontends), "change of a frontend", "changes of frontends")
	return out
}
