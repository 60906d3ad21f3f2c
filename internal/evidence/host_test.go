package evidence

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// The program that reads k3s' files prints what is on the list, in every way
// that YAML lets one write a key, and nothing else.
func TestRancherConfigLeavesSecrets(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"k3s/config.yaml": `# written by hand
token: K10aaa::server:secret
"disable-kube-proxy": true
disable:
- traefik
  # - servicelb
- kube-proxy
agent-token: more
  secret lines: of it
'cluster-cidr' : 10.42.0.0/16
{token: x, disable: [y]}
kubelet-arg+:
  - "max-pods=200"
datastore-endpoint: postgres://user:pass@db`,
		"k3s/config.yaml.d/10-a.yaml": "tls-san: [a.example]\ntoken-file: /x\n",
		"k3s/config.yaml.d/notes.txt": "disable: [x]\n",
		"rke2/config.yaml":            "cni: none\nsystem-default-registry: r.example\n",
	} {
		path := filepath.Join(root, "etc/rancher", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ask, _ := HostAsk(source.RancherConfig)
	program := strings.Replace(ask.Argv[2], "r=/proc/1/root", "r="+root, 1)
	out, err := exec.Command(ask.Argv[0], append([]string{"-c", program}, ask.Argv[3:]...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := `# file: /etc/rancher/k3s/config.yaml
"disable-kube-proxy": true
disable:
- traefik
- kube-proxy
'cluster-cidr' : 10.42.0.0/16
kubelet-arg+:
  - "max-pods=200"
# file: /etc/rancher/k3s/config.yaml.d/10-a.yaml
tls-san: [a.example]
# file: /etc/rancher/rke2/config.yaml
cni: none
`
	if diff := cmp.Diff(want, string(out)); diff != "" {
		t.Error(diff)
	}
}

func TestHostAsks(t *testing.T) {
	for _, spec := range source.Topics() {
		ask, ok := HostAsk(spec.Topic)
		switch {
		case ok != spec.Host:
			t.Errorf("%s: host topic %t, way to ask %t", spec.Topic, spec.Host, ok)
		case ok && (len(ask.Argv) < 3 || ask.Shown("") == "" || !spec.Node):
			t.Errorf("%s: %+v", spec.Topic, ask)
		}
	}
}
