package stage

import (
	"fmt"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
)

// Stage is a point of the move.
type Stage struct {
	Number int
	Name   string // "0 preflight"
	Wants  string // what holds there, in a sentence
	Next   string // what to do from there, in a sentence
	// Weights say how findings count that mean something else here than
	// elsewhere. Rules without one count as they are.
	Weights []Weight
}

// Weight is how the findings of a rule count at a stage.
type Weight struct {
	Rule string
	As   As
	Why  string
}

// As is what a stage makes of a finding.
type As uint8

// The ways to count.
const (
	// Expected makes every finding of the rule an info: it is what the stage
	// looks like.
	Expected As = iota
	// Strict makes warnings of the rule errors; what is merely told stays so.
	Strict
)

// String is the word of reports.
func (a As) String() string { return [...]string{"expected", "strict"}[min(a, Strict)] }

// All lists the stages, first to last.
func All() []Stage {
	return []Stage{preflight(), taken(), alone(), soaked()}
}

// Of finds a stage by its number.
func Of(n int) (Stage, error) {
	all := All()
	i := slices.IndexFunc(all, func(s Stage) bool { return s.Number == n })
	if i < 0 {
		return Stage{}, fmt.Errorf("stage %d: want 0 to %d", n, all[len(all)-1].Number)
	}
	return all[i], nil
}

// always are weights that every stage shares.
func always(more ...Weight) []Weight {
	return append([]Weight{
		{"config-drift", Strict, "an agent that does not run what it is told makes every later step a guess"},
		{"known-regression", Strict, "a step that meets a known bug of this version is better not taken"},
		{"migration-order", Strict, "steps taken too early leave nodes on which nobody translates Services"},
		{"migration-stop", Strict, "a roll that halted half-way is finished or taken back first"},
		{"node-not-ready", Strict, "a node that is not Ready cannot be followed through a step"},
		{"wildcard-node-ip", Strict, "the replacement would cut off the node's own ports"},
	}, more...)
}

func preflight() Stage {
	return Stage{
		Number: 0, Name: "0 preflight",
		Wants: "kube-proxy runs on every node and translates Services; Cilium does not replace it yet",
		Next:  "look at the plan: kubectl kpr migrate",
		Weights: always(
			Weight{"apiserver-addr", Expected, "the first step of stage 1 gives the agents an address"},
			Weight{"host-routing", Expected, "host routing follows the replacement"},
			Weight{"ipvs", Expected, "kube-proxy runs and these are its tables"},
			Weight{"kpr-mode", Expected, "the replacement is off before stage 1"},
			Weight{"kube-chains", Expected, "kube-proxy runs and these are its rules"},
			Weight{"kube-proxy-return", Expected, "kube-proxy is meant to run"},
			Weight{"kube-proxy-running", Expected, "kube-proxy is meant to run"},
			Weight{"nft-table", Expected, "kube-proxy runs and these are its tables"},
			Weight{"release-owner", Strict, "whoever owns the release would take the change back"},
		),
	}
}

func taken() Stage {
	return Stage{
		Number: 1, Name: "1 Cilium takes over",
		Wants: "the agents' roll is finished and every agent replaces kube-proxy, which still runs beside it",
		Next:  "switch kube-proxy off: kubectl kpr migrate --stage 2",
		Weights: always(
			Weight{"apiserver-addr", Strict, "the agents must reach the API server without kube-proxy"},
			Weight{"ipvs", Expected, "kube-proxy still runs and these are its tables"},
			Weight{"kpr-mode", Strict, "the replacement has to be on, as a whole, on every node"},
			Weight{"kube-chains", Expected, "kube-proxy still runs and these are its rules"},
			Weight{"kube-proxy-return", Expected, "kube-proxy still runs by right"},
			Weight{"kube-proxy-running", Expected, "kube-proxy goes in stage 2"},
			Weight{"nft-table", Expected, "kube-proxy still runs and these are its tables"},
			Weight{"release-owner", Strict, "whoever owns the release would take the change back"},
		),
	}
}

func alone() Stage {
	return Stage{
		Number: 2, Name: "2 kube-proxy off",
		Wants: "every agent replaces kube-proxy, and it is proven for every node that kube-proxy does not run",
		Next:  "let it soak: kubectl kpr verify --stage 3 --watch --duration 24h --save soak.jsonl",
		Weights: always(
			Weight{"apiserver-addr", Strict, "the agents must reach the API server without kube-proxy"},
			Weight{"healthz", Strict, "balancers that ask kube-proxy's health port would take the node out"},
			Weight{"k3s-disable-list", Strict, "kube-proxy only looks switched off"},
			Weight{"kpr-mode", Strict, "nobody else translates Services"},
			Weight{"kube-proxy-return", Strict, "kube-proxy would be back after an upgrade or a restart"},
			Weight{"kube-proxy-running", Strict, "kube-proxy is meant to be gone"},
		),
	}
}

func soaked() Stage {
	s := alone()
	s.Number, s.Name = 3, "3 soak"
	s.Wants = "as stage 2, for a day, with no agent restarted by itself and nothing worse than the baseline"
	s.Next = "close it: kubectl kpr migrate --stage 3"
	return s
}

// Weigh lets the stage judge what checks found. It keeps every finding.
func (s *Stage) Weigh(results []diag.Result) {
	for i := range results {
		for j := range results[i].Findings {
			f := &results[i].Findings[j]
			k := slices.IndexFunc(s.Weights, func(w Weight) bool { return w.Rule == f.Rule.Name })
			if k < 0 {
				continue
			}
			switch w := s.Weights[k]; {
			case w.As == Expected && f.Severity > diag.Info:
				f.Message += fmt.Sprintf(" (expected at stage %d: %s)", s.Number, w.Why)
				f.Severity = diag.Info
			case w.As == Strict && f.Severity == diag.Warning:
				f.Message += fmt.Sprintf(" (an error at stage %d: %s)", s.Number, w.Why)
				f.Severity = diag.Error
			}
		}
	}
}
