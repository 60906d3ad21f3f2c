package livetest

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Recording is what a command of an agent answers.
type Recording struct {
	Stdout, Stderr string
	Code           int
	Sleep          string // "0.3": seconds that it stays silent after its output, "" for none
}

// Fault is what goes wrong with an agent's execs.
type Fault uint8

// The faults.
const (
	None   Fault = iota
	Hang         // the connection stands and nothing comes
	Refuse       // pods/exec is forbidden
	Break        // the connection drops after BreakAfter bytes of stdout
	Leave        // there it is closed in good order, which client-go takes for success
	Mute         // it ends at once, well and without a byte
)

// Agent is the agent pod of a node. Set its fields before the first exec.
type Agent struct {
	Node string
	// Answers are the recordings by command line, words joined by one blank.
	Answers map[string]Recording
	// Fault happens on the first Faults execs, on all of them if that is 0.
	Fault      Fault
	Faults     int
	BreakAfter int
	// Unasked allows recordings that nobody asked for, Unknown commands that
	// have no recording.
	Unasked, Unknown bool
	// Run, if not nil, answers execs in place of a process of this machine, and
	// returns the exit code.
	Run func(argv []string, stdout, stderr io.Writer) int

	dir     string
	once    sync.Once
	mu      sync.Mutex
	execs   int
	session []int // process ids of the scripts, which lead sessions
}

// tools are what the script and the network pumps find on an agent's PATH.
var tools = []string{"sh", "bash", "timeout", "head", "cat", "date", "sleep"}

// AddAgent adds a node with a running agent of a version, such as "1.20.2",
// in kube-system.
func (s *Server) AddAgent(node, version string, answers map[string]Recording) *Agent {
	s.t.Helper()
	s.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
	return s.AddPod(AgentPod(node, version), answers)
}

// AddPod adds the pod of an agent, on a node that is there.
func (s *Server) AddPod(pod *corev1.Pod, answers map[string]Recording) *Agent {
	s.t.Helper()
	s.Add(pod)
	a := &Agent{Node: pod.Spec.NodeName, Answers: answers, dir: filepath.Join(s.dir, pod.Spec.NodeName)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agents[pod.Namespace+"/"+pod.Name] = a
	return a
}

// AgentPod is a running agent's pod as the chart makes it.
func AgentPod(node, version string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "cilium-" + node, Namespace: "kube-system",
			Labels:          map[string]string{"k8s-app": "cilium", "app.kubernetes.io/name": "cilium-agent", "app.kubernetes.io/part-of": "cilium"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "cilium", UID: "c"}}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "cilium-agent", Image: "quay.io/cilium/cilium:v" + version, Args: []string{"--config-dir=/tmp/cilium/config-map"}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "cilium-agent", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}},
	}
}

// Execs is how many execs the agent has had.
func (a *Agent) Execs() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.execs
}

// Asked is how often a command was run.
func (a *Agent) Asked(command string) int {
	data, _ := os.ReadFile(filepath.Join(a.dir, "answers", key(command), "asked"))
	return strings.Count(string(data), "\n")
}

// Processes are the processes that the agent's scripts have left running.
func (a *Agent) Processes() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	leaders := map[string]bool{}
	for _, pid := range a.session {
		leaders[strconv.Itoa(pid)] = true
	}
	var left []string
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		data, _ := os.ReadFile(stat)
		// pid (name) state parent group session …
		_, after, _ := strings.Cut(string(data), ") ")
		if f := strings.Fields(after); len(f) > 3 && leaders[f[3]] && f[0] != "Z" {
			left = append(left, string(data[:strings.IndexByte(string(data), ')')+1]))
		}
	}
	return left
}

// fault is what goes wrong with this exec.
func (a *Agent) fault() Fault {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.execs++
	if a.Faults > 0 && a.execs > a.Faults {
		return None
	}
	return a.Fault
}

// replay is the stand-in for every recorded command. $0 tells which one.
const replay = `#!/bin/sh
IFS='|'
d="$RECORDED/${0##*/}|$*"
if [ ! -d "$d" ]; then
  echo "${0##*/} $*" >>"$RECORDED/../unknown"
  echo "no recording of this" >&2
  exit 99
fi
echo x >>"$d/asked"
[ -f "$d/stderr" ] && cat "$d/stderr" >&2
cat "$d/stdout"
[ -f "$d/sleep" ] && read -r s <"$d/sleep" && sleep "$s"
read -r code <"$d/code"
exit "$code"
`

func key(command string) string { return strings.ReplaceAll(command, " ", "|") }

// prepare writes the agent's PATH and recordings.
func (a *Agent) prepare(t T) {
	must := func(err error) {
		if err != nil {
			t.Errorf("livetest: %v", err)
		}
	}
	bin := filepath.Join(a.dir, "bin")
	must(os.MkdirAll(bin, 0o755))
	must(os.MkdirAll(filepath.Join(a.dir, "answers"), 0o755))
	for _, tool := range tools {
		path, err := exec.LookPath(tool)
		must(err)
		must(os.Symlink(path, filepath.Join(bin, tool)))
	}
	stub := filepath.Join(a.dir, "replay")
	must(os.WriteFile(stub, []byte(replay), 0o755))
	for command, r := range a.Answers {
		name, _, _ := strings.Cut(command, " ")
		if err := os.Symlink(stub, filepath.Join(bin, name)); !os.IsExist(err) {
			must(err)
		}
		dir := filepath.Join(a.dir, "answers", key(command))
		must(os.MkdirAll(dir, 0o755))
		files := map[string]string{"stdout": r.Stdout, "code": strconv.Itoa(r.Code) + "\n"}
		if r.Stderr != "" {
			files["stderr"] = r.Stderr
		}
		if r.Sleep != "" {
			files["sleep"] = r.Sleep + "\n"
		}
		for file, text := range files {
			must(os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
		}
	}
}

// check fails the test for commands without a recording and the other way round.
func (a *Agent) check(t T) {
	if a.Execs() == 0 {
		if len(a.Answers) > 0 && !a.Unasked {
			t.Errorf("agent on %s was never asked", a.Node)
		}
		return
	}
	if unknown, err := os.ReadFile(filepath.Join(a.dir, "unknown")); err == nil && !a.Unknown {
		t.Errorf("agent on %s was asked for what it has no recording of:\n%s", a.Node, unknown)
	}
	for command := range a.Answers {
		if a.Asked(command) == 0 && !a.Unasked {
			t.Errorf("agent on %s was never asked for %q", a.Node, command)
		}
	}
}

// run runs argv for an exec and returns its exit code. Like a container
// runtime it goes on when the client has left; a writer that fails then makes
// the process's next write fail.
func (a *Agent) run(t T, argv []string, stdout, stderr io.Writer) int {
	if a.Run != nil {
		return a.Run(argv, stdout, stderr)
	}
	a.once.Do(func() { a.prepare(t) })
	cmd := exec.Command(filepath.Join(a.dir, "bin", argv[0]), argv[1:]...)
	cmd.Args[0] = argv[0]
	cmd.Env = []string{"PATH=" + filepath.Join(a.dir, "bin"), "RECORDED=" + filepath.Join(a.dir, "answers")}
	cmd.SysProcAttr = newSession()
	var pipes sync.WaitGroup
	for _, p := range []struct {
		open func() (io.ReadCloser, error)
		to   io.Writer
	}{{cmd.StdoutPipe, stdout}, {cmd.StderrPipe, stderr}} {
		from, err := p.open()
		if err != nil {
			t.Errorf("livetest: %v", err)
			return 1
		}
		pipes.Go(func() {
			_, _ = io.Copy(p.to, from)
			_ = from.Close()
		})
	}
	if err := cmd.Start(); err != nil {
		return 127
	}
	a.mu.Lock()
	a.session = append(a.session, cmd.Process.Pid)
	a.mu.Unlock()
	pipes.Wait()
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}
