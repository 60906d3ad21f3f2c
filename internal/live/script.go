package live

import (
	"strconv"
	"time"
)

// script runs every command that a node is asked, one after the other, in one
// exec. It is constant; what is to be run comes as positional parameters:
//
//	sh -c script kpr NONCE SECONDS ERRCAP [ID SECONDS OUTCAP NARGS ARG...]...
//
// On stdout and on stderr each command's output stands between two lines that
// begin with the nonce, "NONCE begin ID" and "NONCE end ID CODE"; the newline
// before a line belongs to it. CODE is the command's own, or "late" where the
// time for the whole script was up before its turn. The first line says which
// command line Cilium's agent has here, "NONCE hello cilium-dbg"; it takes the
// place of a first argument %cilium.
//
// Every command runs under timeout, cut down to what is left of the whole, so
// nothing outlives the client by more than that: Kubernetes does not end what
// it started when a connection breaks. Output over a cap is not sent; on
// stderr it is swallowed, so that a talkative command is not killed for it.
// POSIX sh: the agent's image has dash. The exit code travels on descriptor 3,
// past the pipes whose last member's code a shell would report.
const script = `n=$1 end=$(($(date +%s)+$2)) errcap=$3
shift 3
c=cilium-dbg
command -v $c >/dev/null 2>&1 || c=cilium
exec 5>&1
say() { printf '\n%s %s\n' $n "$*" && printf '\n%s %s\n' $n "$*" >&2 || exit 1; }
run() {
[ "$1" = %cilium ] && shift && set -- $c "$@"
left=$((end-$(date +%s)))
if [ $left -le 0 ]; then code=late; return; fi
[ $secs -gt $left ] && secs=$left
code=$({ { { timeout -k 2 $secs "$@" </dev/null 3>&- 5>&-; echo $? >&3; } 2>&1 >&4 4>&- | { head -c $errcap; cat >/dev/null; } >&2 3>&- 4>&- 5>&-; } 4>&1 | head -c $cap >&5 3>&-; } 3>&1)
}
say hello $c
while [ $# -gt 4 ]; do
id=$1 secs=$2 cap=$3 k=$4
shift 4
a= i=1
while [ $i -le $k ]; do a="$a \"\${$i}\"" i=$((i+1)); done
say begin $id
eval "run $a"
shift $k
say end $id $code
done
`

// errCap is how many bytes of stderr each command may send.
const errCap = 16 << 10

// command is one of the script's commands. Its id is its place in the list.
type command struct {
	argv    []string
	limit   int // bytes of stdout
	timeout time.Duration
}

// scriptArgv is the argv for commands, none of which may have an empty argv.
// All of it ends within budget, which is rounded down to seconds and at least
// one, and the two seconds that timeout waits before it kills.
func scriptArgv(nonce string, budget time.Duration, commands []command) []string {
	argv := []string{"sh", "-c", script, "kpr", nonce, seconds(budget), strconv.Itoa(errCap)}
	for id, c := range commands {
		argv = append(argv, strconv.Itoa(id), seconds(c.timeout), strconv.Itoa(c.limit), strconv.Itoa(len(c.argv)))
		argv = append(argv, c.argv...)
	}
	return argv
}

func seconds(d time.Duration) string { return strconv.Itoa(max(1, int(d/time.Second))) }
