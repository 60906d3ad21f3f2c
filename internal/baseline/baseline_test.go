package baseline_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-kpr/kubectl-kpr/internal/baseline"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/stage"
)

// cluster lists what a test gives it; each look takes the next of its states.
type cluster struct {
	looks []map[string][]string // resource to objects as YAML
	at    int
	err   map[string]error
}

func (c *cluster) Objects(_ context.Context, resource, _ string, each func(*unstructured.Unstructured) error) error {
	if err := c.err[resource]; err != nil {
		return err
	}
	objects, ok := c.looks[min(c.at, len(c.looks)-1)][resource]
	if !ok {
		return fmt.Errorf("list %s: %w", resource, source.ErrAbsent)
	}
	for _, text := range objects {
		var u unstructured.Unstructured
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			return err
		}
		if err := u.UnmarshalJSON(raw); err != nil {
			return err
		}
		if err := each(&u); err != nil {
			return err
		}
	}
	c.at++ // tests list one resource
	return nil
}

func object(kind, rest string) string {
	return "apiVersion: x/v1\nkind: " + kind + "\nmetadata: {name: a, namespace: ns, generation: 3}\n" + rest
}

// TestHealth reads the states of every kind that has a meaning of its own.
func TestHealth(t *testing.T) {
	for name, tc := range map[string]struct {
		item baseline.Item
		yaml string
		want stage.Health
	}{
		"deployment ready":            {yaml: object("Deployment", "spec: {replicas: 2}\nstatus: {readyReplicas: 2, observedGeneration: 3}"), want: stage.Health{Good: true, Words: "2 of 2 ready"}},
		"deployment short":            {yaml: object("Deployment", "spec: {replicas: 2}\nstatus: {readyReplicas: 1, observedGeneration: 3}"), want: stage.Health{Words: "1 of 2 ready"}},
		"deployment of one":           {yaml: object("Deployment", "status: {observedGeneration: 3}"), want: stage.Health{Words: "0 of 1 ready"}},
		"deployment to zero":          {yaml: object("Deployment", "spec: {replicas: 0}\nstatus: {observedGeneration: 3}"), want: stage.Health{Good: true, Words: "0 of 0 ready"}},
		"change not taken up":         {yaml: object("StatefulSet", "spec: {replicas: 1}\nstatus: {readyReplicas: 1, observedGeneration: 2}"), want: stage.Health{Words: "1 of 1 ready, its last change is not taken up yet"}},
		"daemonset":                   {yaml: object("DaemonSet", "status: {numberReady: 3, desiredNumberScheduled: 3, observedGeneration: 3}"), want: stage.Health{Good: true, Words: "3 of 3 ready"}},
		"node":                        {yaml: object("Node", "spec: {unschedulable: true}\nstatus: {conditions: [{type: Ready, status: 'True'}]}"), want: stage.Health{Good: true, Words: "Ready=True, cordoned"}},
		"node unknown":                {yaml: object("Node", "status: {conditions: [{type: Ready, status: Unknown, reason: NodeStatusUnknown}]}"), want: stage.Health{Words: "Ready=Unknown (NodeStatusUnknown)"}},
		"claim":                       {yaml: object("PersistentVolumeClaim", "status: {phase: Lost}"), want: stage.Health{Words: "Lost"}},
		"backup":                      {yaml: object("Backup", "status: {phase: PartiallyFailed}"), want: stage.Health{Words: "PartiallyFailed"}},
		"backup completed":            {yaml: object("Backup", "status: {phase: Completed}"), want: stage.Health{Good: true, Words: "Completed"}},
		"application":                 {yaml: object("Application", "status: {sync: {status: Synced}, health: {status: Healthy}}"), want: stage.Health{Good: true, Words: "Synced, Healthy"}},
		"application off":             {yaml: object("Application", "status: {sync: {status: OutOfSync}, health: {status: Healthy}}"), want: stage.Health{Words: "OutOfSync, Healthy"}},
		"secret":                      {yaml: object("ExternalSecret", "status: {conditions: [{type: Ready, status: 'False', reason: SecretSyncedError}]}"), want: stage.Health{Words: "Ready=False (SecretSyncedError)"}},
		"aggregated":                  {yaml: object("APIService", "status: {conditions: [{type: Available, status: 'True'}]}"), want: stage.Health{Good: true, Words: "Available=True"}},
		"says nothing":                {yaml: object("Thing", "status: {}"), want: stage.Health{Words: "no condition Ready or Available or Healthy or Programmed"}},
		"condition of the item":       {item: baseline.Item{Condition: "Synced"}, yaml: object("Thing", "status: {conditions: [{type: Ready, status: 'False'}, {type: Synced, status: 'True'}]}"), want: stage.Health{Good: true, Words: "Synced=True"}},
		"path of the item":            {item: baseline.Item{JSONPath: "{.status.state}", Want: "up"}, yaml: object("Thing", "status: {state: up}"), want: stage.Health{Good: true, Words: "{.status.state} is up"}},
		"path of the item, not there": {item: baseline.Item{JSONPath: "{.status.state}", Want: "up"}, yaml: object("Thing", "status: {}"), want: stage.Health{Words: "{.status.state} is "}},
	} {
		tc.item.Resource = "things"
		c := &cluster{looks: []map[string][]string{{"things": {tc.yaml}}}}
		got, err := baseline.Capture(context.Background(), c, []baseline.Item{tc.item})
		if err != nil {
			t.Fatal(err)
		}
		want := []stage.Group{{Resource: "things", Objects: map[string]stage.Health{"ns/a": tc.want}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestCaptureSaysWhatIsMissing: a resource that is not there and one that may
// not be read are told apart, and neither ends the run.
func TestCaptureSaysWhatIsMissing(t *testing.T) {
	c := &cluster{looks: []map[string][]string{{"nodes": {}}}, err: map[string]error{"things": errors.New("list things: forbidden")}}
	got, err := baseline.Capture(context.Background(), c, []baseline.Item{{Resource: "things"}, {Resource: "others.x"}, {Resource: "nodes"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []stage.Group{
		{Resource: "things", Unread: "list things: forbidden"}, {Resource: "others.x", Absent: true},
		{Resource: "nodes", Objects: map[string]stage.Health{}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSettled: what was well in either look is well, what stays bad is bad.
func TestSettled(t *testing.T) {
	ready := func(n string) string {
		return object("Deployment", "status: {readyReplicas: "+n+", observedGeneration: 3}")
	}
	before := &stage.Baseline{Objects: []stage.Group{{Resource: "d", Objects: map[string]stage.Health{"ns/a": {Good: true}}}}}
	for name, tc := range map[string]struct {
		looks []string
		good  bool
		took  int
	}{
		"well":    {[]string{"1"}, true, 1},
		"rolling": {[]string{"0", "1"}, true, 2},
		"broken":  {[]string{"0", "0"}, false, 2},
	} {
		c := &cluster{}
		for _, n := range tc.looks {
			c.looks = append(c.looks, map[string][]string{"d": {ready(n)}})
		}
		got, err := baseline.Settled(context.Background(), c, []baseline.Item{{Resource: "d"}}, before, time.Nanosecond)
		if err != nil {
			t.Fatal(err)
		}
		if got[0].Objects["ns/a"].Good != tc.good || c.at != tc.took {
			t.Errorf("%s: %+v after %d looks, want good=%v after %d", name, got[0].Objects, c.at, tc.good, tc.took)
		}
	}
}

func TestItemsAreChecked(t *testing.T) {
	for _, bad := range []baseline.Item{
		{}, {Resource: "x", Condition: "a", JSONPath: "{.b}"}, {Resource: "x", JSONPath: "{.b}"},
		{Resource: "x", JSONPath: "{.b", Want: "c"}, {Resource: "x", Exclude: []string{"[a"}},
	} {
		if bad.Valid() == nil {
			t.Errorf("%+v: no fault found", bad)
		}
	}
	for _, good := range baseline.Defaults() {
		if err := good.Valid(); err != nil {
			t.Error(err)
		}
	}
}

func TestFreshBackup(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	all := []baseline.Backup{{Name: "velero/old", Completed: now.Add(-48 * time.Hour)}, {Name: "velero/new", Completed: now.Add(-2 * time.Hour)}}
	if name, ok := baseline.Fresh(all, now, 24*time.Hour); name != "velero/new" || !ok {
		t.Errorf("%s %v", name, ok)
	}
	if name, ok := baseline.Fresh(all, now, time.Hour); name != "velero/new" || ok {
		t.Errorf("%s %v, want it too old", name, ok)
	}
	if _, ok := baseline.Fresh(nil, now, time.Hour); ok {
		t.Error("fresh without any")
	}
}
