package baseline

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/stage"
)

// health is what the object's status says of itself. An object that says
// nothing is not called well, and so never counts as having got worse.
func (i Item) health(o *unstructured.Unstructured) stage.Health {
	switch {
	case i.JSONPath != "":
		return byPath(o, i.JSONPath, i.Want)
	case i.Condition != "":
		return byCondition(o, i.Condition)
	}
	switch o.GetKind() {
	case "Deployment", "StatefulSet":
		return replicas(o)
	case "DaemonSet":
		return count(o, "numberReady", number(o, 0, "status", "desiredNumberScheduled"))
	case "Node":
		return node(o)
	case "PersistentVolumeClaim":
		return phase(o, "Bound")
	case "Backup":
		return phase(o, "Completed", "New", "InProgress", "Finalizing", "WaitingForPluginOperations", "Deleting")
	case "Application":
		return application(o)
	}
	return byCondition(o, "Ready", "Available", "Healthy", "Programmed")
}

// replicas compares what a workload wants with what is ready.
func replicas(o *unstructured.Unstructured) stage.Health {
	return count(o, "readyReplicas", number(o, 1, "spec", "replicas"))
}

func count(o *unstructured.Unstructured, field string, want int64) stage.Health {
	ready := number(o, 0, "status", field)
	seen := number(o, 0, "status", "observedGeneration")
	h := stage.Health{Good: ready >= want && seen >= o.GetGeneration(), Words: fmt.Sprintf("%d of %d ready", ready, want)}
	if seen < o.GetGeneration() {
		h.Words += ", its last change is not taken up yet"
	}
	return h
}

func node(o *unstructured.Unstructured) stage.Health {
	h := byCondition(o, "Ready")
	if off, _, _ := unstructured.NestedBool(o.Object, "spec", "unschedulable"); off {
		h.Words += ", cordoned"
	}
	return h
}

func phase(o *unstructured.Unstructured, good ...string) stage.Health {
	p, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	if p == "" {
		return stage.Health{Words: "no phase"}
	}
	return stage.Health{Good: slices.Contains(good, p), Words: bounded(p)}
}

// application is Argo CD's: it has two states instead of conditions.
func application(o *unstructured.Unstructured) stage.Health {
	sync, _, _ := unstructured.NestedString(o.Object, "status", "sync", "status")
	health, _, _ := unstructured.NestedString(o.Object, "status", "health", "status")
	if sync == "" && health == "" {
		return stage.Health{Words: "neither synced nor healthy yet"}
	}
	return stage.Health{Good: sync == "Synced" && health == "Healthy", Words: bounded(sync + ", " + health)}
}

// byCondition takes the first of the types that the object has.
func byCondition(o *unstructured.Unstructured, types ...string) stage.Health {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, t := range types {
		for _, c := range all {
			m, ok := c.(map[string]any)
			if !ok || m["type"] != t {
				continue
			}
			status, _ := m["status"].(string)
			h := stage.Health{Good: status == "True", Words: t + "=" + bounded(status)}
			if reason, _ := m["reason"].(string); reason != "" && !h.Good {
				h.Words += " (" + bounded(reason) + ")"
			}
			return h
		}
	}
	return stage.Health{Words: "no condition " + strings.Join(types, " or ")}
}

func byPath(o *unstructured.Unstructured, expression, want string) stage.Health {
	p, err := parse(expression)
	if err != nil {
		return stage.Health{Words: err.Error()}
	}
	var b strings.Builder
	if err := p.Execute(&b, o.Object); err != nil {
		return stage.Health{Words: bounded(err.Error())}
	}
	return stage.Health{Good: b.String() == want, Words: bounded(expression + " is " + b.String())}
}

func parse(expression string) (*jsonpath.JSONPath, error) {
	p := jsonpath.New("baseline").AllowMissingKeys(true)
	if err := p.Parse(expression); err != nil {
		return nil, fmt.Errorf("jsonpath %s: %w", expression, err)
	}
	return p, nil
}

func number(o *unstructured.Unstructured, absent int64, fields ...string) int64 {
	n, ok, err := unstructured.NestedInt64(o.Object, fields...)
	if !ok || err != nil {
		return absent
	}
	return n
}

// bounded keeps words of a cluster to a length that a report can bear.
func bounded(s string) string {
	const most = 120
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// Fresh says whether a backup of Velero was completed within age, and which
// one; names are namespace/name.
func Fresh(backups []Backup, now time.Time, age time.Duration) (name string, ok bool) {
	var newest Backup
	for _, b := range backups {
		if b.Completed.After(newest.Completed) {
			newest = b
		}
	}
	return newest.Name, !newest.Completed.IsZero() && now.Sub(newest.Completed) <= age
}

// Backup is a completed backup of Velero.
type Backup struct {
	Name      string
	Completed time.Time
}

// CompletedBackup reads one; false for those that are not completed.
func CompletedBackup(o *unstructured.Unstructured) (Backup, bool) {
	at, _, _ := unstructured.NestedString(o.Object, "status", "completionTimestamp")
	done, err := time.Parse(time.RFC3339, at)
	if err != nil || !phase(o, "Completed").Good {
		return Backup{}, false
	}
	return Backup{Name: o.GetNamespace() + "/" + o.GetName(), Completed: done}, true
}
