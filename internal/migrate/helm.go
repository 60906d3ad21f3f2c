package migrate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
)

// Helm changes the values of a release with the operator's own helm, version 3
// or 4. It keeps the installed chart version, changes its own keys and no other.
type Helm struct {
	Program    string // "helm" if empty
	Release    Release
	Kubeconfig string // file, mode 0600; a token never stands in an argv
	// Run runs a program; nil is the real thing.
	Run func(ctx context.Context, argv, env []string) (stdout []byte, err error)
}

// metadata is `helm get metadata -o json`.
type metadata struct {
	Chart    string `json:"chart"`
	Version  string `json:"version"`
	Revision int    `json:"revision"`
	Status   string `json:"status"`
}

func (h *Helm) call(ctx context.Context, args ...string) ([]byte, error) {
	program := h.Program
	if program == "" {
		program = "helm"
	}
	run := h.Run
	if run == nil {
		run = runProgram
	}
	out, err := run(ctx, append([]string{program}, args...), []string{"KUBECONFIG=" + h.Kubeconfig})
	if err != nil {
		return out, fmt.Errorf("helm %s: %w", args[0], err)
	}
	return out, nil
}

// runProgram runs a program and gives its output; its error has what it said.
func runProgram(ctx context.Context, argv, env []string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(errs.String())
		if i := strings.LastIndexByte(said, '\n'); i >= 0 {
			said = said[i+1:]
		}
		if len(said) > 400 {
			said = said[:400]
		}
		return out.Bytes(), fmt.Errorf("%w: %s", err, said)
	}
	return out.Bytes(), nil
}

// Look reads what is installed.
func (h *Helm) look(ctx context.Context) (metadata, error) {
	var m metadata
	out, err := h.call(ctx, "get", "metadata", h.Release.Name, "--namespace", h.Release.Namespace, "-o", "json")
	if err == nil {
		err = json.Unmarshal(out, &m)
	}
	if err != nil {
		return m, fmt.Errorf("release %s: %w: %w", h.Release.Object, plan.ErrUnverified, err)
	}
	return m, nil
}

func (h *Helm) values(ctx context.Context) (map[string]any, error) {
	out, err := h.call(ctx, "get", "values", h.Release.Name, "--namespace", h.Release.Namespace, "--all", "-o", "json")
	values := map[string]any{}
	if err == nil {
		err = json.Unmarshal(out, &values)
	}
	return values, err
}

// Revision is the number of the release's newest revision that is deployed.
func (h *Helm) Revision(ctx context.Context) (string, error) {
	m, err := h.look(ctx)
	if err != nil {
		return "", err
	}
	if m.Status != "deployed" {
		return "", fmt.Errorf("release %s is %s, not deployed: finish or take back what somebody began (helm history)", h.Release.Object, m.Status)
	}
	return strconv.Itoa(m.Revision), nil
}

// Set upgrades the release to its own chart version with the change's values,
// unless it has them.
func (h *Helm) Set(ctx context.Context, c Change) error {
	m, err := h.look(ctx)
	if err != nil {
		return err
	}
	if m.Version != h.Release.Version {
		return fmt.Errorf("release %s is of chart version %s, the plan of %s: %w", h.Release.Object, m.Version, h.Release.Version, plan.ErrRefused)
	}
	switch {
	case m.Status == "deployed":
		values, err := h.values(ctx)
		if err != nil {
			return err
		}
		if set(values, c.Values) {
			return nil
		}
	case strings.HasPrefix(m.Status, "pending"):
		// A helm that was killed leaves this behind, and nothing can be done
		// before it is taken back.
		if err := h.back(ctx, m.Revision-1); err != nil {
			return err
		}
	case m.Status != "failed":
		return fmt.Errorf("release %s is %s: %w", h.Release.Object, m.Status, plan.ErrRefused)
	}
	file, remove, err := valuesFile(c)
	if err != nil {
		return err
	}
	defer remove()
	_, err = h.call(ctx, "upgrade", h.Release.Name, h.Release.Chart, "--namespace", h.Release.Namespace,
		"--version", h.Release.Version, "--reuse-values", "--values", file)
	return err
}

// valuesFile writes the change's values, for our eyes only.
func valuesFile(c Change) (name string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "kpr-values-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	raw, err := yaml.Marshal(nested(c.Values))
	if err == nil {
		name = filepath.Join(dir, "values.yaml")
		err = os.WriteFile(name, raw, 0o600)
	}
	if err != nil {
		remove()
		return "", nil, err
	}
	return name, remove, nil
}

// Back rolls the release back to a revision, unless its values are as they
// were there already.
func (h *Helm) Back(ctx context.Context, _ Change, revision string) error {
	n, err := strconv.Atoi(revision)
	if err != nil || n < 1 {
		return fmt.Errorf("revision %q of the journal: %w", revision, plan.ErrChanged)
	}
	m, err := h.look(ctx)
	if err != nil {
		return err
	}
	if m.Revision == n && m.Status == "deployed" {
		return nil
	}
	if m.Status == "deployed" {
		same, err := h.sameAs(ctx, n)
		if err != nil || same {
			return err
		}
	}
	return h.back(ctx, n)
}

// sameAs compares the user's values of a revision with the present ones.
func (h *Helm) sameAs(ctx context.Context, revision int) (bool, error) {
	var sides [2][]byte
	for i, more := range [][]string{nil, {"--revision", strconv.Itoa(revision)}} {
		out, err := h.call(ctx, append([]string{"get", "values", h.Release.Name, "--namespace", h.Release.Namespace, "-o", "json"}, more...)...)
		if err != nil {
			return false, err
		}
		sides[i] = bytes.TrimSpace(out)
	}
	return bytes.Equal(sides[0], sides[1]), nil
}

func (h *Helm) back(ctx context.Context, revision int) error {
	if revision < 1 {
		return errors.New("the release has no earlier revision to go back to")
	}
	_, err := h.call(ctx, "rollback", h.Release.Name, strconv.Itoa(revision), "--namespace", h.Release.Namespace)
	return err
}

// Installed is the chart version of the release.
func (h *Helm) Installed(ctx context.Context) (string, error) {
	m, err := h.look(ctx)
	return m.Version, err
}
