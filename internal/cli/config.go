package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/checks"
)

// configRules are the rules about what the agents were told.
var configRules = []string{"config-drift", "apiserver-addr", "host-routing", "kpr-feature-disabled", "healthz", "k3s-disable-list", "kpr-mode"}

func (a *app) config() *cobra.Command {
	run := lookup{app: a, command: "config", settings: &settingsOf{}}
	files := &run.settings.files
	var live bool
	cmd := &cobra.Command{
		Use:     "config",
		GroupID: "look",
		Short:   "What the agents were told and what they run, key by key; or judge files before they are merged",
		Long: `Compares, key by key, what decides how Services work: the chart's values, cilium-config, the
CiliumNodeConfigs that override it on some nodes, and what each agent really runs. Shown are the
keys that differ or are marked:

  restart pending       the agent, which reads cilium-config once, started with another value
  silently dropped      the agent was told so and decided otherwise, with a line in its log at most
  forced by KPR         the replacement turns it on whatever it is told
  gone in this version  accepted, and nothing reads it
  exits at start        the values exclude each other: the next start of an agent will fail
  not applied           the chart's value is not what cilium-config holds

The chart's values are "not read" unless --helm-values or --values gives them. --helm-values
needs get and list of Secrets in the release's namespace: it reads the newest deployed release
into memory and stores nothing.

With --values or --k3s-config no cluster is contacted: the files are judged by themselves, every
finding with file and line. To compare --values with a cluster as well, add --live or --snapshot.
Several --values are merged as helm does, the later wins; a file may be a HelmChartConfig,
HelmChart, HelmRelease or Application too. --k3s-config takes config.yaml, with config.yaml.d
beside it, or the folder of both, of k3s or RKE2.`,
		Example: `  # all nodes; every key with -o wide
  kubectl kpr config

  # with the values of the installed release
  kubectl kpr config --helm-values

  # judge values before they are merged; the exit code is 2 on errors
  kubectl kpr config --values base.yaml --values prod.yaml --cilium-version 1.19.3

  # the configuration of a k3s or RKE2 server together with the values for Cilium
  kubectl kpr config --k3s-config /etc/rancher/k3s --values cilium.yaml

  # what these values would change in the running cluster
  kubectl kpr config --values prod.yaml --live

  # for a pipeline
  kubectl kpr config --values prod.yaml -o junit > values.xml`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := files.misuse(run.from.snapshot, live, run.settings.release); err != nil {
				return usageError(cmd, err)
			}
			if files.given() && !live && run.from.snapshot == "" {
				return files.lint(&run)
			}
			return run.run(cmd.Context(), configChecks())
		},
	}
	run.add(cmd)
	fs := cmd.Flags()
	fs.StringArrayVarP(&files.values, "values", "f", nil, "values file of Cilium's chart; repeats, the later wins")
	fs.StringVar(&files.rancher, "k3s-config", "", "config.yaml of k3s or RKE2, or the folder of it and config.yaml.d")
	fs.StringVar(&files.version, "cilium-version", "", "version that the files are for; what they name themselves, else the newest known")
	fs.BoolVar(&run.settings.release, "helm-values", false, "read the chart's values from the release's Secret, into memory only")
	fs.BoolVar(&live, "live", false, "compare --values with the running cluster too")
	return cmd
}

// configChecks are the checks that have one of the rules.
func configChecks() []*diag.Check {
	return slices.DeleteFunc(checks.All(), func(c *diag.Check) bool {
		return !slices.ContainsFunc(c.Rules, func(r *diag.Rule) bool { return slices.Contains(configRules, r.Name) })
	})
}
