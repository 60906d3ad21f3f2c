package probe

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// dialer is a bash program that makes requests and tells of each what became
// of it. Neither the agent's image nor most pods have a client program, but
// bash opens TCP and UDP sockets by itself.
//
//	bash -c dialer kpr NONCE IP ATONCE TRIES MILLIS GAPMILLIS SECONDS [KIND HOST PORT PAYLOAD]...
//
// With an IP it runs itself again in the network namespace that has this
// address, found among those that the CNI plugin keeps: Cilium's chart mounts
// /var/run/netns of the node into the agent as /var/run/cilium/netns. A process
// of the agent in the pod's namespace is the pod to Cilium: socket LB hangs at
// the root of the cgroups, so it sees the agent's processes as well, and tells
// the host from pods by the cookie of the network namespace; policy and
// per-packet LB hang at the pod's device.
//
// KIND is tcp, which connects and says nothing, or say or send, which connect
// over TCP or UDP, write PAYLOAD (the escapes of printf) and wait for an
// answer. ATONCE requests run at a time, the tries of each one after the other
// and, unless SECONDS is 0, none that begins after so long.
// Lines come as they happen:
//
//	NONCE where PATH                 of the namespace; "own" for the one it began in
//	NONCE where none                 no namespace has the address, and nothing follows
//	NONCE I TRY open MICROS ROW      connected; ROW is the kernel's own of the socket
//	NONCE I TRY reply MICROS HEX     the first bytes of the answer
//	NONCE I TRY failed MICROS WORDS  in bash's words
//	NONCE I TRY late MICROS ROW      no end in time; ROW is of the socket that waits
//	NONCE done                       the last line
//
// A line is shorter than what a pipe takes at a time, so that those of requests
// at the same time never mix; an answer is cut to 512 bytes for it.
//
// ROW is the socket's line of /proc/net/{tcp,tcp6,udp,udp6}: socket LB rewrites
// the address at connect, so the remote address there is the backend's, while
// getpeername is told the frontend's.
const dialer = `export LC_ALL=C
n=$1 ip=$2 many=$3 tries=$4 ms=$5 gap=$6 dur=$7
if [ -n "$ip" ]; then
for f in /var/run/cilium/netns/* /var/run/netns/*; do
[ -e "$f" ] || continue
case "$(nsenter --net="$f" ip -o address 2>/dev/null)" in *" $ip/"*)
echo "$n where $f"; shift 2
exec nsenter --net="$f" bash -c "$BASH_EXECUTION_STRING" kpr "$n" "" "$@";;
esac
done
echo "$n where none"; exit 0
fi
shift 7
echo "$n where own"
secs=$(printf '%d.%03d' $((ms/1000)) $((ms%1000)))
wait=$(printf '%d.%03d' $((gap/1000)) $((gap%1000)))
now() { if [ -n "$EPOCHREALTIME" ]; then t=${EPOCHREALTIME/[.,]/}; else t=$(date +%s%6N); fi; }
row() {
for f in /proc/$1/fd/*; do
l=$(readlink "$f" 2>/dev/null) || continue
case $l in socket:*) l=${l#socket:[}; r=$(grep -hs -m1 " ${l%]} " /proc/$1/net/tcp /proc/$1/net/tcp6 /proc/$1/net/udp /proc/$1/net/udp6); [ -n "$r" ] && { echo ${r%%$'\n'*}; return; };;
esac
done
}
one() {
exec 2>&1
now; a=$t
w=tcp; [ $1 = send ] && w=udp
exec 3<>"/dev/$w/$2/$3" || exit 1
now; echo "open $((t-a)) $(row $BASHPID)"
[ $1 = tcp ] && exit 0
printf "$4" >&3
r=$(dd bs=512 count=1 status=none <&3 | od -An -v -tx1)
now; r=${r//[ $'\n']/}
if [ -n "$r" ]; then echo "reply $((t-a)) $r"; else echo "closed without an answer"; fi
}
request() {
i=$1; shift
for ((k=0; k<tries; k++)); do
[ $k -gt 0 ] && [ $gap -gt 0 ] && sleep $wait
[ $dur -gt 0 ] && [ $SECONDS -ge $dur ] && break
now; b=$t words= ok=
exec {q}< <(one "$@" 3>&-)
c=$!
while :; do
now; left=$((ms*1000-(t-b)))
[ $left -le 0 ] && left=1
read -r -t $(printf '%d.%06d' $((left/1000000)) $((left%1000000))) -u $q line; e=$?
if [ $e -gt 128 ]; then
now; echo "$n $i $k late $((t-b)) $(row $c)"; kill -9 $c 2>/dev/null; ok=1; break
elif [ $e -ne 0 ]; then break
fi
case $line in
"open "*|"reply "*) echo "$n $i $k $line"; [ $1 = tcp ] && ok=1; [ "${line%% *}" = reply ] && ok=1;;
*) words=${words:-$line};;
esac
done
exec {q}<&-
now; [ -n "$ok" ] || echo "$n $i $k failed $((t-b)) ${words:-closed}"
done
}
i=0 run=0
while [ $# -ge 4 ]; do
if [ $run -ge $many ]; then wait -n; run=$((run-1)); fi
request $i "$1" "$2" "$3" "$4" </dev/null & run=$((run+1))
shift 4; i=$((i+1))
done
wait
echo "$n done"
`

// order is one request as the dialer is told.
type order struct {
	kind    string // tcp, say, send
	host    string
	port    uint16
	payload []byte
}

// pace is how the dialer makes requests.
type pace struct {
	tries        int
	timeout, gap time.Duration
	// long, if not zero, is for how long all requests go on at a time.
	long time.Duration
}

// atOnce bounds the requests that run at a time in one place.
const atOnce = 16

// dialerArgv is the argv of a dialer, which ends by itself within life. With an
// ip it looks for the pod's network namespace.
func dialerArgv(nonce, ip string, p pace, orders []order) []string {
	argv := []string{
		"bash", "-c", dialer, "kpr", nonce, ip, strconv.Itoa(p.atOnce(orders)), strconv.Itoa(p.tries), millis(p.timeout), millis(p.gap),
		strconv.Itoa(int(p.long / time.Second)),
	}
	for _, o := range orders {
		argv = append(argv, o.kind, o.host, strconv.Itoa(int(o.port)), escaped(o.payload))
	}
	return guarded(p.life(len(orders)), argv)
}

// life is how long the requests may take when every one of them runs into its
// timeout, and a little for the shell.
func (p pace) life(orders int) time.Duration {
	if p.long > 0 {
		return p.long + p.timeout + p.gap + 5*time.Second
	}
	rounds := (orders + atOnce - 1) / atOnce
	return time.Duration(rounds*p.tries)*(p.timeout+p.gap) + 5*time.Second
}

func (p pace) atOnce(orders []order) int {
	if p.long > 0 {
		return max(1, len(orders))
	}
	return atOnce
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// escaped writes bytes as the escapes of printf, each of them, so that none has
// a meaning to it.
func escaped(b []byte) string {
	var s strings.Builder
	for _, c := range b {
		s.WriteString(`\x` + hex.EncodeToString([]byte{c}))
	}
	return s.String()
}
