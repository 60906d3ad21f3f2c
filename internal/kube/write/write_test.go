package write

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// objects is an API server for one kind, with versions.
type objects struct {
	mu      sync.Mutex
	byName  map[string]map[string]any
	version int
	refuse  func(r *http.Request) (code int, reason, message string)
}

func (o *objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if o.refuse != nil {
		if code, reason, message := o.refuse(r); code != 0 {
			status(w, code, reason, message)
			return
		}
	}
	var body map[string]any
	_ = json.NewDecoder(r.Body).Decode(&body)
	meta, _ := body["metadata"].(map[string]any)
	name := path.Base(r.URL.Path)
	if r.Method == http.MethodPost {
		name, _ = meta["name"].(string)
	}
	old := o.byName[name]
	switch {
	case r.Method == http.MethodGet && old == nil, r.Method == http.MethodPut && old == nil:
		status(w, 404, "NotFound", name+" not found")
		return
	case r.Method == http.MethodGet:
		_ = json.NewEncoder(w).Encode(old)
		return
	case r.Method == http.MethodPost && old != nil:
		status(w, 409, "AlreadyExists", name+" exists")
		return
	case r.Method == http.MethodPut && meta["resourceVersion"] != old["metadata"].(map[string]any)["resourceVersion"]:
		status(w, 409, "Conflict", name+" changed")
		return
	}
	o.version++
	meta["resourceVersion"] = strconv.Itoa(o.version)
	o.byName[name] = body
	_ = json.NewEncoder(w).Encode(body)
}

func status(w http.ResponseWriter, code int, reason, message string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Reason: metav1.StatusReason(reason), Message: message,
	})
}

func serve(t *testing.T) (*objects, *rest.Config) {
	t.Helper()
	o := &objects{byName: map[string]map[string]any{}}
	server := httptest.NewServer(o)
	t.Cleanup(server.Close)
	return o, &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

func TestPut(t *testing.T) {
	o, config := serve(t)
	c, err := NewConfigMaps(config, "ns")
	if err != nil {
		t.Fatal(err)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "1"}}
	first, err := c.Put(t.Context(), cm)
	if err != nil || first.ResourceVersion == "" {
		t.Fatalf("%v %v", first, err)
	}
	if _, err := c.Put(t.Context(), cm); !errors.Is(err, ErrChanged) {
		t.Errorf("created twice: %v", err)
	}
	first.Data["k"] = "2"
	if _, err := c.Put(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(t.Context(), first); !errors.Is(err, ErrChanged) {
		t.Errorf("replaced what was changed: %v", err)
	}
	if _, err := c.Get(t.Context(), "b"); !errors.Is(err, source.ErrAbsent) {
		t.Errorf("%v", err)
	}
	for _, refusal := range []struct {
		code            int
		reason, message string
		class           error
	}{
		{413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728", ErrTooLarge},
		{422, "Invalid", "ConfigMap \"a\" is invalid: []: Too long: may not be more than 1048576 bytes", ErrTooLarge},
		{403, "Forbidden", "configmaps \"a\" is forbidden: exceeded quota: q, requested: count/configmaps=1", ErrTooLarge},
		{403, "Forbidden", "configmaps is forbidden: User cannot create", source.ErrForbidden},
		{500, "InternalError", "etcd", source.ErrUnreachable},
	} {
		o.refuse = func(*http.Request) (int, string, string) { return refusal.code, refusal.reason, refusal.message }
		if _, err := c.Put(t.Context(), cm); !errors.Is(err, refusal.class) {
			t.Errorf("%s: %v", refusal.message, err)
		}
	}
}

func lease(t *testing.T, config *rest.Config, who string) *Lease {
	t.Helper()
	l, err := NewLease(config, "ns", "kpr", who)
	if err != nil {
		t.Fatal(err)
	}
	l.Life = time.Second
	return l
}

// TestLease: who holds it keeps others out, who is dead does not, and who gave
// it back has given it back.
func TestLease(t *testing.T) {
	o, config := serve(t)
	held, release, err := lease(t, config, "ann").Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bob := lease(t, config, "bob")
	told := ""
	bob.Waiting = func(holder string) { told = holder }
	if _, _, err := bob.Hold(t.Context()); !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "held by ann") || told != "ann" {
		t.Fatalf("%v, told of %q", err, told)
	}
	if held.Err() != nil {
		t.Errorf("ann has lost it: %v", held.Err())
	}
	release()
	if held.Err() == nil {
		t.Error("held after release")
	}
	_, release, err = lease(t, config, "bob").Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	release()

	o.mu.Lock() // carol died: nobody renews
	spec := o.byName["kpr"]["spec"].(map[string]any)
	spec["holderIdentity"], spec["leaseDurationSeconds"], spec["renewTime"] = "carol", 1, "2026-12-01T00:00:00.000000Z"
	o.mu.Unlock()
	held, release, err = lease(t, config, "dan").Hold(t.Context())
	if err != nil {
		t.Fatalf("of one who is dead: %v", err)
	}
	defer release()

	o.mu.Lock() // and somebody takes it from dan
	o.byName["kpr"]["spec"].(map[string]any)["holderIdentity"] = "eve"
	o.byName["kpr"]["metadata"].(map[string]any)["resourceVersion"] = "x"
	o.mu.Unlock()
	<-held.Done()
	if cause := held.Err(); cause == nil {
		t.Error("dan believes that he holds it")
	}
}

func TestLeaseForbidden(t *testing.T) {
	o, config := serve(t)
	o.refuse = func(*http.Request) (int, string, string) { return 403, "Forbidden", "leases is forbidden" }
	if _, _, err := lease(t, config, "ann").Hold(t.Context()); !errors.Is(err, source.ErrForbidden) {
		t.Errorf("%v", err)
	}
}

func TestClock(t *testing.T) {
	_, config := serve(t)
	at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := NewClock(config, func() time.Time { return at })
	if _, ok := clock.Server(); ok {
		t.Error("a time before any answer")
	}
	c, err := NewConfigMaps(config, "ns")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.Get(t.Context(), "a")
	if got, ok := clock.Server(); !ok || got.Year() < 2026 {
		t.Errorf("%v %v", got, ok)
	}
}
