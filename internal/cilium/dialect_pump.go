package cilium

// LoopbackGet is a bash program that asks one port of the node's loopback
// addresses over HTTP. The agent's image has no curl, but it has bash, which
// opens TCP connections by itself; the agent runs in the host's network
// namespace, so its loopback is the node's.
//
//	bash -c LoopbackGet all PORT PATH
//
// It prints one line for each address tried, 127.0.0.1 first, ::1 if that was
// not open, and after an open one the HTTP answer as it came, up to 4096 bytes:
//
//	connect: open ADDRESS
//	connect: refused ADDRESS
//	connect: timeout ADDRESS
//	connect: failed ADDRESS: WORDS
//
// An address that the node does not have cannot be listened on; that is told
// as refused too. An open port that does not answer gives only its first line.
// The exit code is 0 in every case, and it ends within about 6 seconds: each
// address is tried by a second bash running this same text under timeout.
const LoopbackGet = `if [ "$0" = one ]; then
exec 3<>"/dev/tcp/$1/$2" || exit 1
echo "connect: open $1"
printf 'GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n' "$3" >&3
head -c 4096 <&3
exit 0
fi
for a in 127.0.0.1 ::1; do
r=$(LC_ALL=C timeout -k 1 2 bash -c "$BASH_EXECUTION_STRING" one "$a" "$1" "$2" 2>&1)
c=$?
case $r in
"connect: open"*) printf '%s\n' "$r"; exit 0;;
*refused*|*"assign requested"*|*"not supported"*) echo "connect: refused $a";;
*) if [ $c -ge 124 ]; then echo "connect: timeout $a"; else echo "connect: failed $a: ${r##*: }"; fi;;
esac
done
exit 0
`

// APIPump is a bash program that connects its streams to the API server which
// the agent itself dials: the address in its environment, where Kubernetes puts
// the ClusterIP and KPR's settings put a direct one, or the given one.
//
//	bash -c APIPump kpr [HOST PORT]
//
// It prints "HOST PORT", then "open" once it is connected, and from there on
// what comes back. A connection that fails ends it with exit code 1 and bash's
// own words on stderr. It ends when its input does.
const APIPump = `h=${1:-$KUBERNETES_SERVICE_HOST} p=${2:-$KUBERNETES_SERVICE_PORT}
printf '%s %s\n' "$h" "$p"
exec 3<>"/dev/tcp/$h/$p" || exit 1
echo open
cat <&3 &
cat >&3
kill $! 2>/dev/null
exit 0
`
