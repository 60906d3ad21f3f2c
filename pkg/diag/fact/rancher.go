package fact

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/distro"
	"github.com/kubectl-kpr/kubectl-kpr/internal/rancher"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

var (
	// RancherFiles are the files of k3s or RKE2 on a node's host, read with --host.
	RancherFiles = Read(source.RancherConfig, func(a source.Artifact) ([]rancher.File, error) { return rancher.Split(a.Data), nil })
	// RancherFlags are a node's flags of k3s or RKE2: as they run, and as its
	// files will have it after the next start.
	RancherFlags = Define("rancher-flags", true, []Named{NodeArgs, RancherFiles, Distro}, rancherFlags)
)

// Flags are the flags of one node.
type Flags struct {
	Server  bool
	Running []string // the arguments that the process wrote on its Node; nil if none are known
	// Next is what the files say, nil where they were not read or there are none:
	// what is on the command line is not in them, and goes before.
	Next *rancher.Config
	// Looked: the files were read, whether or not there are any.
	Looked bool
	// NotRead is why there is no Next though a host was asked, nil else.
	NotRead error
}

// rancherFlags is absent for nodes that are neither k3s nor RKE2 by what is known.
func rancherFlags(v *View) (Flags, error) {
	args, argErr := NodeArgs.From(v)
	files, fileErr := RancherFiles.From(v)
	d, _ := Distro.From(v)
	f := Flags{Running: args}
	if fileErr == nil {
		f.Looked = true
		f.Next, f.NotRead = merged(v, files)
	} else if !errors.Is(fileErr, source.ErrAbsent) {
		f.NotRead = fileErr
	}
	switch {
	case len(args) > 0:
		f.Server = slices.Contains(args[:min(len(args), 2)], "server")
	case f.Next != nil:
		f.Server = serves(f.Next)
	case f.NotRead != nil && d.Files != "":
		return f, f.NotRead
	case argErr != nil:
		return f, argErr
	default:
		return f, fmt.Errorf("flags of k3s or RKE2: %w", source.ErrAbsent)
	}
	return f, nil
}

// merged takes the files of the node's distribution, as those of the other one
// may have been left behind; where it is not known those of the first.
func merged(v *View, files []rancher.File) (*rancher.Config, error) {
	if len(files) == 0 {
		return nil, nil
	}
	d, _ := Distro.From(v)
	of := d.Files
	if of == "" {
		of = path.Dir(strings.Replace(files[0].Name, ".d/", "/", 1)) // config.yaml.d stands beside config.yaml
	}
	var mine []rancher.File
	for _, f := range files {
		if strings.HasPrefix(f.Name, of) {
			mine = append(mine, f)
		}
	}
	if len(mine) == 0 {
		return nil, nil
	}
	return rancher.Merge(mine)
}

// serves tells a server's files from an agent's by the flags that only a server
// has, or by not joining one.
func serves(c *rancher.Config) bool {
	if c.Last("server") == "" {
		return true
	}
	for _, key := range []string{"disable", "disable-kube-proxy", "flannel-backend", "disable-network-policy", "cluster-cidr", "service-cidr", "tls-san"} {
		if _, ok := c.Get(key); ok {
			return true
		}
	}
	return false
}

// Value is what a flag has after the next start as far as the files tell: its
// words sorted and joined, and the file that has the last word. Lines cannot be
// told, as the files come reduced. ok is false where they do not name it.
func (f Flags) Value(flag string) (words, where string, ok bool) {
	if f.Next == nil {
		return "", "", false
	}
	e, ok := f.Next.Get(flag)
	if !ok {
		return "", "", false
	}
	var values []string
	for _, value := range f.Next.Strings(flag) {
		values = append(values, value.Text)
	}
	return flagWords(values), e.File, true
}

// Runs is what a flag has in the running process; ok is false where its
// arguments do not name it.
func (f Flags) Runs(flag string) (words string, ok bool) {
	values, ok := distro.Values(f.Running, flag)
	return flagWords(values), ok
}

// flagWords makes two spellings of one value the same.
func flagWords(values []string) string {
	values = slices.Clone(values)
	for i, v := range values {
		switch strings.ToLower(v) {
		case "1", "t", "true":
			values[i] = "true"
		case "0", "f", "false":
			values[i] = "false"
		}
	}
	slices.Sort(values)
	return strings.Join(slices.Compact(values), ",")
}
