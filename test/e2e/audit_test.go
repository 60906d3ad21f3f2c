//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/evidence"
)

// event is one line of the API server's audit log.
type event struct {
	Verb             string `json:"verb"`
	RequestURI       string `json:"requestURI"`
	Stage            string `json:"stage"`
	ImpersonatedUser *struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	ObjectRef *struct {
		Resource, Subresource, Namespace, Name, APIGroup string
	} `json:"objectRef"`
}

// reader is the user that the commands run as. Its role is what the evidence
// table says it costs, so a permission that is needed and not listed there
// shows as a gap.
const reader = "kpr-e2e"

// roleOf is a role with those permissions, as a list of objects for kubectl.
func roleOf(all []evidence.Access) ([]byte, error) {
	type object = map[string]any
	var everywhere, inCilium []object
	for _, a := range all {
		resource := a.Resource
		if a.Subresource != "" {
			resource += "/" + a.Subresource
		}
		rule := object{"apiGroups": []string{a.Group}, "resources": []string{resource}, "verbs": []string{a.Verb}}
		if a.Name != "" {
			rule["resourceNames"] = []string{a.Name}
		}
		if a.InCilium {
			inCilium = append(inCilium, rule)
		} else {
			everywhere = append(everywhere, rule)
		}
	}
	const group = "rbac.authorization.k8s.io"
	role := func(prefix, namespace string, rules []object) []any {
		meta := object{"name": reader}
		if namespace != "" {
			meta["namespace"] = namespace
		}
		return []any{
			object{"apiVersion": group + "/v1", "kind": prefix + "Role", "metadata": meta, "rules": rules},
			object{"apiVersion": group + "/v1", "kind": prefix + "RoleBinding", "metadata": meta,
				"roleRef":  object{"apiGroup": group, "kind": prefix + "Role", "name": reader},
				"subjects": []object{{"kind": "User", "apiGroup": group, "name": reader}}},
		}
	}
	items := append(role("Cluster", "", everywhere), role("", "kube-system", inCilium)...)
	return json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": items})
}

// Reading commands read: the API server itself says so.
func TestAuditLogShowsReadingOnly(t *testing.T) {
	enter(t, "kpr")
	role := filepath.Join(t.TempDir(), "role.json")
	objects, err := roleOf(evidence.All())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(role, objects, 0o600); err != nil {
		t.Fatal(err)
	}
	theLab.kubectl(t, "apply", "-f", role)
	defer theLab.kubectl(t, "delete", "-f", role)
	before, err := os.Stat(theLab.audit)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"status"}, {"check"}, {"snapshot", filepath.Join(t.TempDir(), "s.tar.gz")}, {"exec", "kpr-w1", "--", "true"}, {"explain"},
	} {
		if a := kpr(t, append([]string{"--as", reader}, args...)...); a.code != 0 {
			t.Errorf("%s with the role of docs/evidence.md: exit code %d\n%s%s", strings.Join(args, " "), a.code, a.stdout, a.stderr)
		}
	}
	time.Sleep(time.Second)
	events := auditSince(t, before.Size())
	if len(events) < 10 {
		t.Fatalf("%d events of user %s in %s", len(events), reader, theLab.audit)
	}
	seen := map[string]int{}
	for _, e := range events {
		seen[e.what()]++
		if !e.reads() {
			t.Errorf("not reading: %s %s", e.Verb, e.RequestURI)
		}
	}
	t.Logf("%d requests: %v", len(events), seen)
}

func auditSince(t *testing.T, offset int64) []event {
	t.Helper()
	f, err := os.Open(theLab.audit)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(offset, 0); err != nil {
		t.Fatal(err)
	}
	var events []event
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // the line that was cut by the offset
		}
		if e.ImpersonatedUser != nil && e.ImpersonatedUser.Username == reader && e.Stage != "ResponseStarted" {
			events = append(events, e)
		}
	}
	return events
}

func (e event) what() string {
	if e.ObjectRef == nil {
		return e.Verb + " " + strings.SplitN(e.RequestURI, "?", 2)[0]
	}
	return strings.TrimSuffix(e.Verb+" "+e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")
}

// reads holds for what reading commands are allowed to ask. An exec over a
// WebSocket begins with a GET and is written down as one.
func (e event) reads() bool {
	if e.ObjectRef == nil {
		return e.Verb == "get"
	}
	switch o := e.ObjectRef; {
	case o.Resource == "pods" && o.Subresource == "exec":
		return o.Namespace == "kube-system" && strings.HasPrefix(o.Name, "cilium-") && slices.Contains([]string{"get", "create"}, e.Verb)
	case o.Resource == "selfsubjectaccessreviews":
		return e.Verb == "create"
	case o.Resource == "secrets":
		return false
	}
	return slices.Contains([]string{"get", "list", "watch"}, e.Verb)
}
