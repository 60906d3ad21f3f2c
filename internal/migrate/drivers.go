package migrate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
)

// Commanded changes the values by commands of the operator's, such as a
// playbook, and believes none of them: nodes are asked afterwards.
type Commanded struct {
	Driver
	Run func(ctx context.Context, argv, env []string) (stdout []byte, err error)
}

// Revision is of no use here: the way back is a command too.
func (c *Commanded) Revision(context.Context) (string, error) { return "command", nil }

// Set runs the command unless its check says that there is nothing to do.
func (c *Commanded) Set(ctx context.Context, change Change) error {
	file, remove, err := valuesFile(change)
	if err != nil {
		return err
	}
	defer remove()
	if _, err := c.call(ctx, c.CheckArgv, change, file); err == nil {
		return nil
	}
	if _, err := c.call(ctx, c.Argv, change, file); err != nil {
		return fmt.Errorf("driver: %w", err)
	}
	if _, err := c.call(ctx, c.CheckArgv, change, file); err != nil {
		return fmt.Errorf("driver: the check says that the change is not made: %w", err)
	}
	return nil
}

// Back runs the command that takes the step back.
func (c *Commanded) Back(ctx context.Context, change Change, _ string) error {
	if _, err := c.call(ctx, c.UndoArgv, change, ""); err != nil {
		return fmt.Errorf("driver: %w", err)
	}
	return nil
}

// call fills in the words STEP and VALUES; nothing of the cluster is among them.
func (c *Commanded) call(ctx context.Context, argv []string, change Change, file string) ([]byte, error) {
	words := make([]string, len(argv))
	for i, w := range argv {
		switch w {
		case "STEP":
			w = change.Name
		case "VALUES":
			w = file
		}
		words[i] = w
	}
	run := c.Run
	if run == nil {
		run = runProgram
	}
	return run(ctx, words, nil)
}

// Emitted leaves the change to who owns the release: the values are written to
// a file, and the step waits until every agent runs with them.
type Emitted struct {
	Eyes   Eyes
	Nodes  []string
	Folder string // where the files go
}

// Revision is of no use here.
func (e *Emitted) Revision(context.Context) (string, error) { return "owner", nil }

// Set fails, with the file, until the agents say what is wanted.
func (e *Emitted) Set(ctx context.Context, c Change) error {
	s := rolling{World: &World{Eyes: e.Eyes}, c: c, nodes: e.Nodes}
	if s.lacking(ctx, c.Want) == "" {
		return nil
	}
	name, err := e.write(c.Name, nested(c.Values))
	if err != nil {
		return err
	}
	return fmt.Errorf("the values of this step are in %s: set them where Cilium's values are kept (the Application, the HelmRelease, the HelmChartConfig), wait for its roll, and run this again: %w", name, plan.ErrRefused)
}

// Back fails, with the list of what to take back, until it is: what the agents
// say afterwards is asked by the step itself.
func (e *Emitted) Back(_ context.Context, c Change, _ string) error {
	var paths []string
	for path := range c.Values {
		paths = append(paths, path)
	}
	name, err := e.write(c.Name+"-back", map[string]any{"takeBack": paths})
	if err != nil {
		return err
	}
	return fmt.Errorf("take back %s where Cilium's values are kept (listed in %s), wait for its roll, and run this again: %w", strings.Join(paths, ", "), name, plan.ErrRefused)
}

func (e *Emitted) write(step string, v any) (string, error) {
	raw, err := yaml.Marshal(v)
	if err != nil {
		return "", err
	}
	name := filepath.Join(e.Folder, "kpr-"+step+".yaml")
	return name, os.WriteFile(name, raw, 0o600)
}
