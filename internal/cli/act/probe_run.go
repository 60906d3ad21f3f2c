package act

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cli"
	"github.com/kubectl-kpr/kubectl-kpr/internal/kube"
	"github.com/kubectl-kpr/kubectl-kpr/internal/live"
	"github.com/kubectl-kpr/kubectl-kpr/internal/probe"
	"github.com/kubectl-kpr/kubectl-kpr/internal/probe/guest"
	"github.com/kubectl-kpr/kubectl-kpr/internal/version"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

// probing are the flags of probe, and what one run of it needs.
type probing struct {
	share   cli.Share
	cluster cli.ClusterFlags
	output  cli.OutputFlags
	nodes   cli.NodeFlags

	from              []string
	tries, most       int
	timeout, interval time.Duration
	protocol, path    string
	image             string
	yes               bool

	matrix, deploy bool
	continuous     bool
	duration       time.Duration
}

func (r *probing) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringArrayVar(&r.from, "from", []string{probe.AllNodes}, "who connects: pod/NAME, pod/NAMESPACE/NAME, node/NAME or all-nodes; repeats")
	fs.IntVar(&r.tries, "tries", 3, "requests on each path")
	fs.DurationVar(&r.timeout, "timeout", 3*time.Second, "how long a request may take")
	fs.DurationVar(&r.interval, "interval", 0, "time between two requests of a path; 200ms with --continuous")
	fs.StringVar(&r.protocol, "protocol", "auto", "how to ask: auto, tcp, http, https, dns or udp")
	fs.StringVar(&r.path, "path", "/", "what http asks for")
	fs.IntVar(&r.most, "max", 2000, "most paths to try")
	fs.StringVar(&r.image, "image", "", "image of an ephemeral container or of --deploy, with bash in it; the agent's own if not given")
	fs.BoolVarP(&r.yes, "yes", "y", false, "do not ask before an ephemeral container or a workload is made")
	fs.BoolVar(&r.matrix, "matrix", false, "try each kind of frontend that the cluster has, from a pod and from the host of each node")
	fs.BoolVar(&r.deploy, "deploy", false, "with --matrix: on a small workload in a namespace of its own, which is removed again")
	fs.BoolVar(&r.continuous, "continuous", false, "go on for --duration, and tell failures and the longest gap of each path")
	fs.DurationVar(&r.duration, "duration", time.Minute, "with --continuous: for how long")
	r.cluster.Add(cmd)
	r.output.Add(cmd)
	r.nodes.Add(r.share, cmd)
	_ = cmd.RegisterFlagCompletionFunc("protocol", cobra.FixedCompletions([]string{"auto", "tcp", "http", "https", "dns", "udp"}, cobra.ShellCompDirectiveNoFileComp))
}

func (r *probing) validate() error {
	_, err := probe.ParseAsk(r.protocol)
	switch {
	case err != nil:
		return fmt.Errorf("--protocol: %w", err)
	case r.tries < 1 || r.tries > 1000:
		return fmt.Errorf("--tries %d: want 1 to 1000", r.tries)
	case r.timeout < 100*time.Millisecond || r.timeout > time.Minute:
		return fmt.Errorf("--timeout %s: want 100ms to 1m", r.timeout)
	case r.interval < 0 || r.interval > time.Minute:
		return fmt.Errorf("--interval %s: want 0 to 1m", r.interval)
	case r.most < 1:
		return fmt.Errorf("--max %d: want 1 or more", r.most)
	case r.deploy && !r.matrix:
		return errors.New("--deploy belongs to --matrix")
	case r.matrix && r.continuous:
		return errors.New("--matrix and --continuous: one at a time")
	case r.continuous && (r.duration < time.Second || r.duration > 24*time.Hour):
		return fmt.Errorf("--duration %s: want 1s to 24h", r.duration)
	case !strings.HasPrefix(r.path, "/") || strings.ContainsAny(r.path, " \r\n\t"):
		return fmt.Errorf("--path %q: want one that begins with / and has no blanks", r.path)
	}
	return nil
}

func (r *probing) wish() probe.Wish {
	ask, _ := probe.ParseAsk(r.protocol) // validated
	return probe.Wish{Ask: ask, Remote: true, Max: r.most}
}

func (r *probing) options(failOn diag.Severity) probe.Options {
	return probe.Options{Tool: version.String(), Now: r.share.Env().Now(), FailOn: failOn}
}

// session is a cluster with a prober for it.
type session struct {
	*live.Source
	*kube.Client
	within    string
	prober    *probe.Prober
	ephemeral *guest.Ephemeral
}

// open makes the session. The image of an ephemeral container is the agent's,
// which is on every node already, unless another is named.
func (r *probing) open(within string) (*session, error) {
	r.cluster.Within(within)
	src, err := r.cluster.Open(r.share)
	if err != nil {
		return nil, err
	}
	config, err := r.share.Config()
	if err != nil {
		return nil, err
	}
	s := &session{Source: src, within: within}
	if s.Client, err = kube.New(config); err != nil {
		return nil, err
	}
	pods, err := exec.New(config)
	if err != nil {
		return nil, err
	}
	if s.ephemeral, err = guest.NewEphemeral(config, func(ctx context.Context) string { return src.AgentImage(ctx, r.image) }, r.consent); err != nil {
		return nil, err
	}
	s.prober = &probe.Prober{
		Agents: src, Pods: pods, Ephemeral: s.ephemeral, Policies: s.Client, Now: r.share.Env().Now,
		Tries: r.tries, Timeout: r.timeout, Gap: r.interval, HTTPPath: r.path, Concurrency: r.cluster.Concurrency(), Watch: true,
	}
	if r.continuous {
		s.prober.Long = r.duration.Truncate(time.Second)
		if s.prober.Gap == 0 {
			s.prober.Gap = 200 * time.Millisecond
		}
	}
	return s, nil
}

func (s *session) left() []string { return s.ephemeral.Left() }

// ask probes, a second time without the shortcut of a single namespace where
// that does not tell whose an address is.
func (s *session) ask(ctx context.Context, q probe.Question) (*probe.Answer, error) {
	a, err := s.prober.Ask(ctx, s.Source, q, s.within)
	if errors.Is(err, probe.ErrShared) {
		a, err = s.prober.Ask(ctx, s.Source, q, "")
	}
	return a, err
}

// consent says what is about to be made and asks, unless --yes has said so.
func (r *probing) consent(ctx context.Context, what string) error {
	env := r.share.Env()
	r.cluster.Clear()
	_, _ = fmt.Fprintf(env.ErrOut, "kubectl kpr: makes %s\n", what)
	if r.yes {
		return nil
	}
	if in, ok := env.In.(io.Writer); !ok || !isTerminal(env, in) {
		return errors.New("it has to be agreed to, and nobody can be asked, standard input is no terminal: give --yes")
	}
	_, _ = fmt.Fprint(env.ErrOut, "Make it? [y/N] ")
	answer, err := ask(ctx, env.In)
	if err != nil {
		return err
	}
	if word := strings.ToLower(answer); word != "y" && word != "yes" {
		return errors.New("it was declined")
	}
	return nil
}
