package sysdump

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// node is a node of the dump.
type node struct {
	name   string
	reason string   // why there is no agent to ask
	pods   []string // names of its agent's pods
	cmd    string   // folder of the outputs, "" if nothing was collected
	inner  *contents
	helped bool // through a pod that the collector started
	down   bool // the agent did not answer its own command line
}

// helper is the pod that the collector starts where the agent's container does
// not run. It is deleted afterwards and stands in no list.
var helper = regexp.MustCompile(`^sysdump-[a-z0-9]{5}$`)

// findNodes ties the folders to the nodes.
func (s *Source) findNodes() error {
	objects, pods := s.objects(), s.podList()
	all := map[string]*node{}
	add := func(name string) *node {
		if all[name] == nil {
			all[name] = &node{name: name}
		}
		return all[name]
	}
	for i := range objects {
		add(objects[i].Name)
	}
	byPod := map[string]string{}
	for i := range pods {
		p := &pods[i]
		byPod[p.Name] = p.Spec.NodeName
		if p.Labels["k8s-app"] == "cilium" && p.Spec.NodeName != "" && all[p.Spec.NodeName] != nil {
			n := all[p.Spec.NodeName]
			n.pods = append(n.pods, p.Name)
		}
	}
	var loose []*node
	for _, f := range s.folders {
		n := &node{cmd: path.Join(f.dir, "cmd")}
		if f.packed {
			if err := n.unpack(s.archive, f.dir); err != nil {
				continue // told by the node that has no folder
			}
		}
		name := byPod[f.pod]
		if name == "" {
			name = n.guess(s.archive, objects)
		}
		if name == "" {
			loose = append(loose, n)
			continue
		}
		at := add(name)
		at.cmd, at.inner = n.cmd, n.inner
		if f.pod != "" && !helper.MatchString(f.pod) && !slices.Contains(at.pods, f.pod) {
			at.pods = append(at.pods, f.pod)
		}
		at.helped = at.helped || helper.MatchString(f.pod)
	}
	if err := s.settle(all, loose); err != nil {
		return err
	}
	for _, n := range all {
		s.nodes = append(s.nodes, *n)
	}
	slices.SortFunc(s.nodes, func(a, b node) int { return cmp.Compare(a.name, b.name) })
	for i := range s.nodes {
		n := &s.nodes[i]
		n.down = n.agentDown(s.archive)
		switch {
		case n.cmd == "":
			n.reason = s.log.noFolder()
		case n.down:
			n.reason = s.whyDown(n)
		}
		s.byName[n.name] = n
	}
	return nil
}

// fatal is the last word of an agent that gave up.
var fatal = regexp.MustCompile(`level=fatal msg="?([^"\n]{1,300})`)

// whyDown says what is known of an agent that did not answer.
func (s *Source) whyDown(n *node) string {
	reason := "the agent does not answer its own command line"
	if n.helped {
		reason = "the agent's container did not run, so that the collector started a pod of its own"
	}
	a, err := s.findLog(source.Query{Topic: source.AgentLog, Node: n.name}, n)
	if err != nil {
		return reason
	}
	if said := fatal.FindAllSubmatch(lastLines(s.archive.one(a.member)), -1); len(said) > 0 {
		reason += `; its log ends with "` + bounded(string(said[len(said)-1][1])) + `"`
	}
	return reason
}

// settle gives the one folder that tells no node to the one node without a
// folder. More of either stay apart.
func (s *Source) settle(all map[string]*node, loose []*node) error {
	var bare []*node
	for _, n := range all {
		if n.cmd == "" {
			bare = append(bare, n)
		}
	}
	switch {
	case len(loose) == 1 && len(bare) == 1:
		bare[0].cmd, bare[0].inner = loose[0].cmd, loose[0].inner
	case len(loose) == 1 && len(all) == 0:
		loose[0].name = "node"
		all["node"] = loose[0]
	case len(loose) > 0 && len(all) == 0:
		return fmt.Errorf("%w: %d folders of nodes, and nothing tells which is which", ErrNotSysdump, len(loose))
	}
	return nil
}

// guess tells the node by what its own commands said: its host name, or the
// agent's list of nodes.
func (n *node) guess(a *contents, objects []corev1.Node) string {
	name := strings.TrimSpace(string(n.read(a, "hostname.md")))
	for i := range objects {
		o := &objects[i]
		if o.Name == name || o.Labels[corev1.LabelHostname] == name && name != "" {
			return o.Name
		}
	}
	for _, prefix := range prefixes {
		var list []struct {
			Name  string `json:"name"`
			Local bool   `json:"local"`
		}
		part, err := jsonPart(n.read(a, prefix+"node-list--o-json.md"), "")
		if err != nil || json.Unmarshal(part, &list) != nil {
			continue
		}
		for _, one := range list {
			if one.Local {
				return path.Base(one.Name) // CLUSTER/NODE
			}
		}
	}
	addresses := string(n.read(a, "ip-a.md"))
	for i := range objects {
		for _, at := range objects[i].Status.Addresses {
			if at.Type == corev1.NodeInternalIP && strings.Contains(addresses, " "+at.Address+"/") {
				return objects[i].Name
			}
		}
	}
	if len(objects) == 0 && plainName(name) {
		return name
	}
	return ""
}

func plainName(s string) bool {
	return s != "" && len(s) <= 253 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.'
	}) && !strings.HasPrefix(s, ".")
}

// agentDown holds where the agent's own command line had no agent to ask.
func (n *node) agentDown(a *contents) bool {
	for _, prefix := range prefixes {
		if data := n.read(a, prefix+"status---verbose.md"); len(data) > 0 {
			_, err := answer(data, nodeFile{format: source.Text})
			return errors.Is(err, source.ErrAgentDown)
		}
	}
	return false
}

// lookup finds the file of the node that is meant; of an archive inside the
// archive it is read at once.
func (n *node) lookup(a *contents, f nodeFile) (member string, data []byte, ok bool) {
	from := a
	if n.inner != nil {
		from = n.inner
	}
	for _, prefix := range names(f) {
		member = path.Join(n.cmd, prefix+f.name+".md")
		if f.glob {
			member = from.first(path.Join(n.cmd, prefix+f.name), f.format)
		}
		if size, there := from.Size(member); !there || size > maxAnswer {
			continue
		}
		if n.inner != nil {
			if data = from.one(member); data == nil {
				data = []byte{}
			}
			member = path.Join(path.Base(n.inner.Name()), member)
		}
		return member, data, true
	}
	return "", nil, false
}

func names(f nodeFile) []string {
	if f.plain {
		return []string{""}
	}
	return prefixes
}

// read is one small file of the node, nil if it is not there.
func (n *node) read(a *contents, name string) []byte {
	if n.inner != nil {
		a = n.inner
	}
	return a.one(path.Join(n.cmd, name))
}

// unpack opens an archive that lies in the dump because the collector failed
// to unpack it.
func (n *node) unpack(a *contents, member string) error {
	data := a.one(member)
	if data == nil {
		return source.ErrCut
	}
	inner, err := source.ArchiveOf(member, data, source.Limits{})
	if err != nil {
		return err
	}
	l, err := oneNode(inner)
	if err != nil {
		_ = inner.Close()
		return err
	}
	n.inner, n.cmd = &contents{Archive: inner}, path.Join(l.folders[0].dir, "cmd")
	n.inner.prepare(nil, l.folders)
	return nil
}

// objects are the Node objects of the dump, none if they cannot be read.
func (s *Source) objects() []corev1.Node {
	var list struct {
		Items []corev1.Node `json:"items"`
	}
	_ = yaml.Unmarshal(s.archive.one(s.file("k8s-nodes", ".yaml")), &list)
	return slices.DeleteFunc(list.Items, func(n corev1.Node) bool { return !plainName(n.Name) })
}

// podList are the pods of the dump, from whichever form there is.
func (s *Source) podList() []corev1.Pod {
	var list struct {
		Items []corev1.Pod `json:"items"`
	}
	data := s.archive.one(s.file("k8s-pods", ".yaml"))
	if len(bytes.TrimSpace(data)) == 0 {
		data, _ = podTable(append(slices.Clone(s.archive.one(s.file("k8s-pods", ".txt"))), '\n'))
	}
	_ = yaml.Unmarshal(data, &list)
	return list.Items
}
