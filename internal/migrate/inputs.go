package migrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-kpr/kubectl-kpr/internal/baseline"
)

// Inputs are what a plan is made of. They are what a plan file holds, with what
// was found out about the cluster filled in.
type Inputs struct {
	// Distribution is its name, "" if it was not recognised.
	Distribution string   `json:"distribution,omitempty"`
	Nodes        []string `json:"nodes"` // sorted; those that run an agent
	Agents       Object   `json:"agents"`
	Release      Release  `json:"release"`
	Target       Target   `json:"target"`
	Driver       Driver   `json:"driver"`
	Proxy        Proxy    `json:"proxy"`
	// Combine does all of stage 1 in one roll.
	Combine bool `json:"combine,omitempty"`
	// Order are nodes that come first in stage 2, such as a canary.
	Order    []string        `json:"order,omitempty"`
	Baseline []baseline.Item `json:"baseline,omitempty"`
	Checks   []Command       `json:"checks,omitempty"`
}

// Object is an object's name.
type Object struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (o Object) String() string { return o.Namespace + "/" + o.Name }

// Release is Cilium's Helm release.
type Release struct {
	Object
	Chart   string `json:"chart,omitempty"`   // where helm finds it: a repository's chart, an OCI address or a folder
	Version string `json:"version,omitempty"` // the installed one, which is kept
}

// Target is what stage 1 brings about. A nil switch is left as it is.
type Target struct {
	APIHost     string `json:"apiHost,omitempty"`
	APIPort     string `json:"apiPort,omitempty"`
	Replace     *bool  `json:"kubeProxyReplacement,omitempty"`
	Masquerade  *bool  `json:"masquerade,omitempty"`
	HostRouting *bool  `json:"hostRouting,omitempty"`
}

// Driver is how Cilium's values are changed.
type Driver struct {
	Kind string `json:"kind"` // helm, command, emit
	Helm string `json:"helm,omitempty"`
	// Argv changes the values, its words STEP and VALUES replaced by the step's
	// name and a file of values; CheckArgv exits with 0 where they are changed.
	// UndoArgv takes the step back.
	Argv      []string `json:"argv,omitempty"`
	CheckArgv []string `json:"checkArgv,omitempty"`
	UndoArgv  []string `json:"undoArgv,omitempty"`
}

// Proxy is kube-proxy, and how it goes.
type Proxy struct {
	// DaemonSet is set where kube-proxy is one that may be changed.
	DaemonSet *Object `json:"daemonSet,omitempty"`
	// ConfigMap goes with it, or a kubeadm upgrade brings it back.
	ConfigMap *Object `json:"configMap,omitempty"`
	// ByHand is what to do where it is no DaemonSet, and Argv does it.
	ByHand string   `json:"byHand,omitempty"`
	Argv   []string `json:"argv,omitempty"`
	Back   []string `json:"backArgv,omitempty"`
}

// Command is a check of the operator's: exit code 0 is good.
type Command struct {
	Name string   `json:"name"`
	Argv []string `json:"argv"`
}

// maxFile bounds a plan file.
const maxFile = 1 << 20

// ReadInputs reads a plan file, YAML or JSON. Keys that do not exist are
// refused: one that is ignored is a step that is not taken.
func ReadInputs(name string, r io.Reader) (*Inputs, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", name, err)
	}
	if len(raw) > maxFile {
		return nil, fmt.Errorf("plan %s: larger than %d KiB", name, maxFile>>10)
	}
	var in Inputs
	if err := yaml.UnmarshalStrict(raw, &in); err != nil {
		return nil, fmt.Errorf("plan %s: %w", name, err)
	}
	return &in, nil
}

// Write writes the inputs as a plan file.
func (in *Inputs) Write(w io.Writer) error {
	raw, err := yaml.Marshal(in)
	if err != nil {
		return err
	}
	_, err = w.Write(raw)
	return err
}

// JSON is the form in which inputs are journaled.
func (in *Inputs) JSON() (json.RawMessage, error) { return json.Marshal(in) }

// FromJSON reads journaled inputs. They are data: they are checked as a plan
// file is.
func FromJSON(raw json.RawMessage) (*Inputs, error) {
	var in Inputs
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, fmt.Errorf("inputs of the journal: %w", err)
	}
	return &in, in.Valid()
}

// Valid tells what is wrong with inputs, all of it.
func (in *Inputs) Valid() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("plan: "+format, args...)) }
	if len(in.Nodes) == 0 {
		fault("nodes: none")
	}
	if in.Agents.Name == "" || in.Agents.Namespace == "" {
		fault("agents: the DaemonSet's namespace and name are needed")
	}
	t := in.Target
	if (t.APIHost == "") != (t.APIPort == "") {
		fault("target: apiHost and apiPort belong together")
	}
	if n, err := strconv.ParseUint(t.APIPort, 10, 16); t.APIPort != "" && (err != nil || n == 0) {
		fault("target.apiPort %q: no port", t.APIPort)
	}
	if strings.ContainsAny(t.APIHost, "/: ") && !isIPv6(t.APIHost) {
		fault("target.apiHost %q: want a name or an address, without scheme and port", t.APIHost)
	}
	if on(t.Masquerade) && t.Replace != nil && !*t.Replace {
		fault("target: BPF masquerade needs the replacement")
	}
	in.validDriver(fault)
	for _, n := range in.Order {
		if !slices.Contains(in.Nodes, n) {
			fault("order: node %q is none of the plan's", n)
		}
	}
	for _, b := range in.Baseline {
		if err := b.Valid(); err != nil {
			faults = append(faults, err)
		}
	}
	for _, c := range in.Checks {
		if c.Name == "" || len(c.Argv) == 0 {
			fault("checks: a name and an argv are needed")
		}
	}
	return errors.Join(faults...)
}

func (in *Inputs) validDriver(fault func(string, ...any)) {
	switch d := in.Driver; d.Kind {
	case "helm":
		if in.Release.Name == "" || in.Release.Chart == "" || in.Release.Version == "" {
			fault("driver helm: release.name, release.chart (where helm finds the chart, such as cilium/cilium or a folder) and release.version are needed")
		}
	case "command":
		if len(d.Argv) == 0 || len(d.CheckArgv) == 0 || len(d.UndoArgv) == 0 {
			fault("driver command: argv, checkArgv and undoArgv are needed: a change that cannot be checked and taken back is not made")
		}
	case "emit":
	default:
		fault("driver.kind %q: want helm, command or emit", d.Kind)
	}
	if p := in.Proxy; p.DaemonSet == nil && p.ByHand == "" && len(p.Argv) == 0 {
		fault("proxy: neither a DaemonSet nor a way to switch kube-proxy off")
	}
}

func isIPv6(s string) bool {
	ip, err := netip.ParseAddr(s)
	return err == nil && ip.Is6()
}

func on(b *bool) bool { return b != nil && *b }
