package probe

import (
	"strconv"
	"time"
)

// guard runs a program for so many seconds at most, and ends it and all that it
// started when the input ends: that alone tells it that the one who asked is
// gone, killed or not. Kubernetes ends nothing that an exec has begun.
//
//	bash -c guard kpr SECONDS ARGV...
//
// Without job control a shell gives what runs beside it an empty input, so the
// input is kept under another number.
const guard = `t=$1; shift; exec 9<&0
if command -v timeout >/dev/null 2>&1; then timeout -k 2 "$t" "$@" 9<&- </dev/null & p=$!
else "$@" 9<&- </dev/null & p=$!
fi
{ cat <&9 >/dev/null; kill $p; } 2>/dev/null & w=$!
wait $p; r=$?
kill $w 2>/dev/null
exit $r`

// guarded is argv under guard, which ends within life.
func guarded(life time.Duration, argv []string) []string {
	return append([]string{"bash", "-c", guard, "kpr", strconv.Itoa(max(1, int(life/time.Second)))}, argv...)
}
