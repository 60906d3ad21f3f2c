package sysdump

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// FuzzAnswer: whatever a file holds, it is an answer or an error of a known
// class, and the error can be printed.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		"", "{}", "[]\n> Error while running 'x':  exit status 1\n\n", "# x\n\n```\n{\"a\":1}\n```\n", "level=warning x\n[1]\n",
		"Get \"http:///var/run/cilium/cilium.sock\": connect: refused\nIs the agent running?\n", "{\"frontends\":[{\"a\":1},{\"b\":2}]}",
		"SERVICE ADDRESS   BACKEND ADDRESS (REVNAT_ID) (SLOT)\n",
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, object bool) {
		file := nodeFile{format: source.Text}
		if object {
			file = nodeFile{format: source.JSON, part: "frontends"}
		}
		_, err := answer(data, file)
		if err == nil {
			return
		}
		if source.ClassOf(err) == "" {
			t.Errorf("error without a class: %v", err)
		}
		if text := err.Error(); !utf8.ValidString(text) && !object || strings.ContainsAny(text, "\x1b") || len(text) > 2000 {
			t.Errorf("error that cannot be printed: %q", text)
		}
	})
}

// FuzzPodTable: a table of pods becomes a list or an error.
func FuzzPodTable(f *testing.F) {
	f.Add([]byte("NAMESPACE     NAME           READY   STATUS             RESTARTS       AGE     IP             NODE     NOMINATED NODE   READINESS GATES\nkube-system   cilium-cbzlp   0/1     CrashLoopBackOff   6 (2m3s ago)   8m15s   192.168.5.15   k3s-1    <none>           <none>\n"))
	f.Add([]byte("NAMESPACE NAME STATUS NODE\n"))
	f.Fuzz(func(t *testing.T, data []byte) { _, _ = podTable(data) })
}

func TestPodTable(t *testing.T) {
	out, err := podTable([]byte("NAMESPACE     NAME           READY   STATUS             RESTARTS       AGE     IP             NODE     NOMINATED NODE   READINESS GATES\n" +
		"kube-system   cilium-cbzlp   0/1     CrashLoopBackOff   6 (2m3s ago)   8m15s   192.168.5.15   k3s-1    <none>           <none>\n" +
		"shop          web-1          1/1     Running            0              1m      10.0.0.1       <none>   <none>           <none>\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"nodeName":"k3s-1"`, `"k8s-app":"cilium"`, `"restartCount":6`, `"reason":"CrashLoopBackOff"`, `"podIP":"10.0.0.1"`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s is not in %s", want, out)
		}
	}
	if strings.Contains(string(out), `"nodeName":"<none>"`) {
		t.Error("a pod without a node has one")
	}
}
