package cluster

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/machine"
	"github.com/kubectl-kpr/kubectl-kpr/test/lab/place"
	"github.com/kubectl-kpr/kubectl-kpr/test/lab/recipe"
)

//go:embed manifests
var manifests embed.FS

// Lab is a raised lab.
type Lab struct {
	Dirs place.Dirs
	Bins recipe.Bins
	// Say tells what goes on, one line at a time.
	Say func(format string, args ...any)
}

// New is a lab whose binaries are in the cache or will be.
func New(d place.Dirs, w io.Writer) (*Lab, error) {
	bins, _, err := recipe.Built(d)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	return &Lab{Dirs: d, Bins: bins, Say: func(format string, args ...any) {
		_, _ = fmt.Fprintf(w, "%4.0fs %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}}, nil
}

// Kubectl runs kubectl as the administrator, input on its standard input.
func (l *Lab) Kubectl(ctx context.Context, input string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, l.Bins["kubectl"], args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+l.Dirs.Kubeconfig())
	if input != "" {
		cmd.Stdin = strings.NewReader(input)
	}
	return machine.RunWith(ctx, cmd)
}

// Get decodes the JSON of one kubectl get.
func (l *Lab) Get(ctx context.Context, into any, args ...string) error {
	out, err := l.Kubectl(ctx, "", append(append([]string{"get"}, args...), "-o", "json")...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), into)
}

// Apply applies YAML.
func (l *Lab) Apply(ctx context.Context, yaml string) error {
	_, err := l.Kubectl(ctx, yaml, "apply", "--server-side", "--force-conflicts", "-f", "-")
	return err
}

// Delete deletes what YAML names, and does not mind what is gone already.
func (l *Lab) Delete(ctx context.Context, yaml string) error {
	_, err := l.Kubectl(ctx, yaml, "delete", "--ignore-not-found", "--grace-period=1", "-f", "-")
	return err
}

// Rollout waits for a workload, "ds/cilium" for example, to be rolled out.
func (l *Lab) Rollout(ctx context.Context, namespace, workload string, timeout time.Duration) error {
	_, err := l.Kubectl(ctx, "", "-n", namespace, "rollout", "status", workload, "--timeout="+timeout.String())
	return err
}

// Helm runs helm as the administrator.
func (l *Lab) Helm(ctx context.Context, args ...string) (string, error) {
	home := l.Dirs.Under("helm")
	cmd := exec.CommandContext(ctx, l.Bins["helm"], args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+l.Dirs.Kubeconfig(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	return machine.RunWith(ctx, cmd)
}

// In runs a command on a node.
func (l *Lab) In(ctx context.Context, node string, argv ...string) (string, error) {
	return machine.Run(ctx, append([]string{"/proc/self/exe", "in", node, "--"}, argv...)...)
}

// Agent is the pod of a node's agent that is not about to go.
func (l *Lab) Agent(ctx context.Context, node string) (string, error) {
	var pods struct {
		Items []struct {
			Metadata struct{ Name, DeletionTimestamp string }
		}
	}
	if err := l.Get(ctx, &pods, "-n", "kube-system", "pods", "-l", "k8s-app=cilium", "--field-selector", "spec.nodeName="+node); err != nil {
		return "", err
	}
	for _, p := range pods.Items {
		if p.Metadata.DeletionTimestamp == "" {
			return p.Metadata.Name, nil
		}
	}
	return "", fmt.Errorf("node %s: no agent pod", node)
}

// InAgent runs a command in a node's agent.
func (l *Lab) InAgent(ctx context.Context, node string, argv ...string) (string, error) {
	pod, err := l.Agent(ctx, node)
	if err != nil {
		return "", err
	}
	return l.Kubectl(ctx, "", append([]string{"-n", "kube-system", "exec", pod, "-c", "cilium-agent", "--"}, argv...)...)
}

// Until polls until the condition holds, and says in the error what it last
// waited for.
func (l *Lab) Until(ctx context.Context, what string, limit time.Duration, ok func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last error
	for {
		done, err := ok(ctx)
		if done && err == nil {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s: not within %s", what, limit), last)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// manifest is an embedded file with the words in pairs replaced.
func manifest(name string, pairs ...string) (string, error) {
	data, err := manifests.ReadFile("manifests/" + name)
	if err != nil {
		return "", err
	}
	return strings.NewReplacer(pairs...).Replace(string(data)), nil
}

// remember writes a JSON file into the state folder; recall reads it.
func (l *Lab) remember(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(l.Dirs.Under(name), append(data, '\n'), 0o644)
}

func (l *Lab) recall(name string, v any) error {
	data, err := os.ReadFile(filepath.Join(l.Dirs.State, name))
	if err != nil {
		return err
	}
	return json.NewDecoder(bytes.NewReader(data)).Decode(v)
}
