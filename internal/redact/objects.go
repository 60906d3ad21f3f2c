package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// objects replaces in a list of Kubernetes objects, or in a single one.
func (r *Redactor) objects(t source.Topic, format source.Format, data []byte) ([]byte, error) {
	raw := data
	if format == source.YAML {
		var err error
		if raw, err = yaml.YAMLToJSON(data); err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	w := walk{r: r, topic: t}
	if list, ok := v.(map[string]any); ok {
		if items, ok := list["items"].([]any); ok {
			for i := range items {
				items[i] = w.object(items[i])
			}
			list["items"] = items
			delete(list, "metadata")
		} else {
			v = w.object(v)
		}
	}
	if r.learning {
		return nil, nil
	}
	if format == source.YAML {
		return yaml.Marshal(v)
	}
	return json.Marshal(v)
}

// walk goes through one object.
type walk struct {
	r     *Redactor
	topic source.Topic
	own   bool // the object is Cilium's or kube-proxy's
}

func (w walk) object(v any) any {
	o, ok := v.(map[string]any)
	if !ok {
		return v
	}
	w.own = ours(o)
	return w.value("", o)
}

// ours holds for what Cilium, kube-proxy, kube-vip and the node-local resolver run as: of
// their pods the settings are evidence, of others they are nobody's business.
func ours(o map[string]any) bool {
	meta, _ := o["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	name, _ := meta["name"].(string)
	for _, key := range []string{"k8s-app", "app.kubernetes.io/part-of", "app.kubernetes.io/name", "component", "name"} {
		if s, _ := labels[key].(string); strings.HasPrefix(s, "cilium") || s == "kube-proxy" || strings.HasPrefix(s, "kube-vip") || strings.HasPrefix(s, "node-local") {
			return true
		}
	}
	return strings.HasPrefix(name, "cilium") || strings.HasPrefix(name, "kube-proxy") || strings.HasPrefix(name, "kube-vip") || strings.Contains(name, "-kube-proxy") || strings.Contains(name, "node-local") || strings.Contains(name, "nodelocal")
}

// value replaces in what stands under key.
func (w walk) value(key string, v any) any {
	switch x := v.(type) {
	case string:
		return w.text(key, x)
	case []any:
		for i := range x {
			x[i] = w.value(key, x[i])
		}
		return x
	case map[string]any:
		return w.fields(key, x)
	}
	return v
}

// gone are fields that no rule reads and that tell of a cluster.
var gone = map[string]bool{"managedFields": true, "selfLink": true, "volumesInUse": true, "volumesAttached": true, "imagePullSecrets": true, "imageID": true, "containerID": true, "machineID": true, "systemUUID": true, "bootID": true}

// private are fields of pods that are not ours.
var private = map[string]bool{"env": true, "envFrom": true, "args": true, "command": true, "volumes": true, "volumeMounts": true, "volumeDevices": true, "lifecycle": true, "livenessProbe": true, "startupProbe": true, "readinessProbe": true}

func (w walk) fields(key string, m map[string]any) any {
	switch key {
	case "labels", "matchLabels", "nodeSelector", "podLabels":
		if flat(m) {
			return w.r.labels(m)
		}
	case "selector":
		if flat(m) {
			return w.r.labels(m)
		}
	case "annotations":
		return w.r.annotations(m)
	}
	pods := w.topic == source.Pods || w.topic == source.DaemonSets
	for k, v := range m {
		switch {
		case gone[k], k == "images" && w.topic == source.Nodes:
			delete(m, k)
		case pods && !w.own && private[k]:
			if m[k] = w.localIPs(v); m[k] == nil {
				delete(m, k)
			}
		case secretField(k) && w.topic != source.CiliumConfig && !isMap(v):
			m[k] = dropped
		case k == "name" && key == "env":
		case k == "value" && key == "env":
			m[k] = w.env(m["name"], v)
		case (k == "key" || k == "value" || k == "values") && choosing[key]:
			m[k] = walk{r: w.r, topic: w.topic}.value(k, v)
		case k == "name" && (key == "ports" || key == "toPorts"):
			if s, ok := v.(string); ok {
				m[k] = w.port(s)
			}
		case k == "name" && (key != "metadata" && key != "targetRef" && key != "ownerReferences" && key != "forZones" && key != "forNodes" && key != "claimRef") && w.own:
			m[k] = w.value("", v)
		default:
			m[k] = w.value(k, v)
		}
	}
	return m
}

// localIPs keeps of a command what tells a node-local resolver, whatever its
// name: the addresses it takes over. It is nil for everything else.
func (w walk) localIPs(v any) any {
	words, _ := v.([]any)
	var kept []any
	for i, word := range words {
		s, _ := word.(string)
		key, _, joined := strings.Cut(strings.TrimLeft(s, "-"), "=")
		if key != "localip" || !strings.HasPrefix(s, "-") {
			continue
		}
		if kept = append(kept, w.r.Text(s)); !joined && i+1 < len(words) {
			if next, ok := words[i+1].(string); ok {
				kept = append(kept, w.r.scrub(next))
			}
		}
	}
	if kept == nil {
		return nil
	}
	return kept
}

// choosing are lists of what chooses nodes or pods by label or taint.
var choosing = map[string]bool{"tolerations": true, "taints": true, "matchExpressions": true, "matchFields": true}

// env replaces the value of a variable; those of some names are hosts.
func (w walk) env(name, value any) any {
	n, _ := name.(string)
	s, ok := value.(string)
	if n == "bgp_peers" || strings.HasSuffix(n, "pass") || secretField(n) { // of kube-vip: passwords stand between the addresses
		return dropped
	}
	if ok && (strings.HasSuffix(n, "_HOST") || strings.HasSuffix(n, "_NAME") || strings.HasSuffix(n, "_SERVER") || strings.HasSuffix(n, "_ENDPOINT") || n == "address" || n == "vip_address" || n == "kubernetes_addr") {
		w.r.learnHost(s)
	}
	return w.value("", value)
}

func flat(m map[string]any) bool {
	for _, v := range m {
		if _, ok := v.(string); !ok {
			return false
		}
	}
	return true
}

func isMap(v any) bool {
	switch v.(type) {
	case map[string]any, []any, bool, nil, json.Number:
		return true
	}
	return false
}

func secretField(k string) bool {
	switch strings.ToLower(k) {
	case "cabundle", "password", "token", "tls.crt", "tls.key", "ca.crt", "ca.key":
		return true
	}
	return false
}

func (w walk) port(s string) string {
	w.r.learnPort(s)
	return w.r.Name(s)
}

// named are fields that hold a name and nothing else.
var named = map[string]bool{
	"name": true, "namespace": true, "nodeName": true, "hostname": true, "serviceName": true, "serviceAccountName": true, "serviceAccount": true, "subdomain": true, "podName": true, "storageClassName": true,
	"externalName": true, "nominatedNodeName": true, "zone": true, "clusterName": true, "cluster-name": true, "azure-resource-group": true, "azure-user-assigned-identity-id": true, "ec2-api-endpoint": true, "priorityClassName": true, "schedulerName": true,
}

func (w walk) text(key, s string) string {
	r := w.r
	switch {
	case s == "":
		return s
	case key == "kind" || key == "apiVersion" || key == "type" || key == "operator" || key == "effect" || key == "reason" || key == "phase":
		return s
	case named[key]:
		if a, err := netip.ParseAddr(s); err == nil {
			r.noteAddr(a)
			return r.Addr(a).String()
		}
		if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" {
			return r.scrub(s)
		}
		r.Learn(s)
		return r.Name(s)
	case key == "generateName":
		bare := strings.TrimRight(s, "-")
		r.Learn(bare)
		return r.Name(bare) + s[len(bare):]
	case key == "targetPort":
		return w.port(s)
	case key == "runtimeClassName":
		return r.path(s)
	case key == "address" || key == "addresses" || key == "server" || key == "hostIP":
		return w.host(s)
	case key == "image":
		return w.image(s)
	case key == "topologyKey" || key == "key" && !w.own: // of ours it may be a key of a ConfigMap
		return r.labelKey(s)
	case key == "values" || key == "value" && !w.own:
		return r.scrub(s)
	case key == "providerID" || key == "volumeHandle" || key == "path" && w.topic == source.PersistentVolumes || key == "share":
		return r.scrub(s)
	}
	return r.read(w.topic, s)
}

// host replaces an address or a host's name.
func (w walk) host(s string) string {
	if a, err := netip.ParseAddr(s); err == nil {
		w.r.noteAddr(a)
		return w.r.Addr(a).String()
	}
	w.r.learnHost(s)
	return w.r.Text(s)
}

// read learns what a text tells by form, and replaces in it.
func (r *Redactor) read(t source.Topic, s string) string {
	if r.learning {
		r.learnText(t, s)
	}
	if len(s) > 16 {
		s = secrets(s)
	}
	return r.Text(s)
}
