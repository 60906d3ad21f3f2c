package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// tools are what the script finds on an agent's PATH beside the stand-ins:
// what the agent's image has and this machine too.
var tools = []string{"sh", "bash", "timeout", "head", "cat", "date", "sleep", "sort", "sed", "awk", "grep", "tr", "gzip", "base64", "cut", "jq", "sha256sum"}

// standIn answers every command of an agent. $0 and the words tell which one.
const standIn = `#!/bin/sh
IFS='|'
d="$RECORDED/${0##*/}|$*"
[ -f "$d" ] && exec cat "$d"
echo "no recording of ${0##*/} $*" >&2
exit 99
`

// shell is a folder in which the script of an agent runs for real.
type shell struct{ dir string }

// newShell writes the answers, by command line, where the stand-ins find them.
func newShell(dir string, answers map[string][]byte) (shell, error) {
	bin, recorded := filepath.Join(dir, "bin"), filepath.Join(dir, "answers")
	for _, d := range []string{bin, recorded} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return shell{}, err
		}
	}
	for _, tool := range tools {
		path, err := exec.LookPath(tool)
		if err != nil {
			return shell{}, fmt.Errorf("this machine has no %s: %w", tool, err)
		}
		if err := os.Symlink(path, filepath.Join(bin, tool)); err != nil {
			return shell{}, err
		}
	}
	for command, answer := range answers {
		name, _, _ := strings.Cut(command, " ")
		if err := os.WriteFile(filepath.Join(bin, name), []byte(standIn), 0o755); err != nil {
			return shell{}, err
		}
		file := filepath.Join(recorded, strings.ReplaceAll(command, " ", "|"))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { // words may be paths
			return shell{}, err
		}
		if err := os.WriteFile(file, answer, 0o644); err != nil {
			return shell{}, err
		}
	}
	return shell{dir}, nil
}

// run runs argv and gives what it wrote, and the time of a processor that it
// took: what the script does on a node beside the agent's own commands.
func (s shell) run(argv []string) (stdout, stderr []byte, code int, busy time.Duration) {
	bin := filepath.Join(s.dir, "bin")
	cmd := exec.Command(filepath.Join(bin, argv[0]), argv[1:]...)
	cmd.Args[0] = argv[0]
	cmd.Env = []string{"PATH=" + bin, "RECORDED=" + filepath.Join(s.dir, "answers"), "LC_ALL=C"}
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); cmd.ProcessState == nil {
		return nil, []byte(err.Error()), 127, 0
	}
	return out.Bytes(), errOut.Bytes(), cmd.ProcessState.ExitCode(), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}
