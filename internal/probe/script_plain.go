package probe

import (
	"strconv"
	"time"
)

// plainDialer does what the dialer does with the client programs that a pod
// has where it has no bash: nc, curl or wget. It cannot see the socket, so it
// tells neither backend nor mechanism, and its times are those of whole
// programs.
//
//	sh -c plainDialer kpr NONCE TRIES SECONDS [KIND HOST PORT PAYLOAD]...
const plainDialer = `n=$1 tries=$2 secs=$3
shift 3
has() { command -v $1 >/dev/null 2>&1; }
has nc || has curl || has wget || { echo "$n where none"; exit 0; }
echo "$n where own"
now() { t=$(date +%s%N 2>/dev/null); case $t in *N|"") t=$(date +%s)000000;; *) t=${t%???};; esac; }
try() {
h=$2; case $h in *:*) u="[$h]";; *) u=$h;; esac
if has nc; then
case $1 in
tcp) nc -w $secs $h $3 </dev/null 2>&1 >/dev/null;;
say) printf "$4" | nc -w $secs $h $3 2>&1 | head -c 2048;;
send) printf "$4" | nc -u -w $secs $h $3 2>&1 | head -c 2048;;
esac
elif [ $1 = send ]; then echo "no program here sends datagrams"; return 1
elif has curl; then curl -sS -i -g -m $secs "http://$u:$3/" 2>&1 | head -c 2048
else wget -q -S -T $secs -O /dev/null "http://$u:$3/" 2>&1 | head -c 2048
fi
}
i=0
while [ $# -ge 4 ]; do
k=0
while [ $k -lt $tries ]; do
now; a=$t
r=$(try "$1" "$2" "$3" "$4"); e=$?
now; d=$((t-a)); x=$(printf %s "$r" | od -An -v -tx1 | tr -d ' \n')
case "$1 $e $r" in
"tcp 0 "*|*HTTP/*) echo "$n $i $k open $d"; [ -n "$x" ] && echo "$n $i $k reply $d $x";;
*[Rr]efused*|*"o route"*|*nreachable*|*"imed out"*|*"no program"*) echo "$n $i $k failed $d $(printf %s "$r" | head -n1)";;
"tcp "*) if [ $d -ge $((secs*900000)) ]; then echo "$n $i $k late $d"; else echo "$n $i $k failed $d ${r:-not connected}"; fi;;
*) if [ -n "$x" ]; then echo "$n $i $k reply $d $x"; else echo "$n $i $k late $d"; fi;;
esac
k=$((k+1))
done
shift 4; i=$((i+1))
done
echo "$n done"
`

func plainArgv(nonce string, p pace, orders []order) []string {
	if p.long > 0 { // a program for each request is no way to watch a change
		p.tries = max(1, int(p.long/(p.gap+time.Second)))
	}
	argv := []string{"sh", "-c", plainDialer, "kpr", nonce, strconv.Itoa(p.tries), strconv.Itoa(max(1, int(p.timeout/time.Second)))}
	for _, o := range orders {
		argv = append(argv, o.kind, o.host, strconv.Itoa(int(o.port)), escaped(o.payload))
	}
	return argv
}
