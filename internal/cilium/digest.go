package cilium

import (
	"bytes"
	"errors"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// digestScript tells in kilobytes what a node and its agent hold, so that nodes
// which hold the same need not send it. In `service list` and in the dump of the
// maps, what is of one node only is taken out: ids, the order of slots, and the
// node's own addresses, which become "self". The lines are sorted, and their
// SHA-256 stands for them.
//
// What differs between healthy nodes comes in full: frontends with a Local
// policy, host ports and local redirects, as the agent or the map calls them.
// So do rows of the table of frontends that are not Done.
//
// All of it stays in pipes, nothing is written on the node. A step that fails,
// as for want of jq, fails the whole.
const digestScript = `set -o pipefail
own=$(ip -br addr | awk '{for(i=3;i<=NF;i++){sub(/\/.*/,"",$i); printf "%s ",$i}}') || exit 1
sums() { LC_ALL=C sort | awk 'BEGIN{h="sha256sum"; printf "" | h} /^S/{print | h; next} {print substr($0,3)} END{fflush(); close(h)}'; }
digest() {
agent=$(cilium-dbg service list -o json | jq -r '.[]? | (.status.realized // .spec) | del(.id) | .["backend-addresses"] |= ((. // []) | sort)
| .["frontend-address"] as $a | .flags as $f
| (if ($a.ip | contains(":")) then "[\($a.ip)]" else $a.ip end) as $ip
| "\($ip):\($a.port)/\($a.protocol // "ANY" | ascii_upcase)\(if $a.scope == "internal" then "/i" else "" end)" as $at
| (if ([$f.extTrafficPolicy, $f.intTrafficPolicy, $f.trafficPolicy] | index("Local")) or $f.type == "LocalRedirect" or $f.type == "HostPort" then "L" else "S" end) + " \($at) \({spec: .} | tojson)"') || return 1
echo "= agent"
printf '%s\n' "$agent" | sums || return 1
echo "= kernel"
cilium-dbg shell -- lb/maps-dump | awk -v own="$own" '
BEGIN{n=split(own,o," "); for(i=1;i<=n;i++) self[o[i]]=1}
function key(a, ip,rest) {
ip=a; sub(/:[0-9]+\/.*$/,"",ip); rest=substr(a,length(ip)+1); gsub(/[][]/,"",ip)
home=""; if (!(ip in self)) return a
home=(index(ip,":") ? "[::]" : "0.0.0.0") rest; return "self" (index(ip,":") ? 6 : 4) rest
}
step==1{if($1=="L") loc[$2]=1; next}
{split("",f); for(i=2;i<=NF;i++){p=index($i,"="); f[substr($i,1,p-1)]=substr($i,p+1)}}
$1=="BE:"{be[f["ID"]]=f["ADDR"] " " f["STATE"]; raw[f["ID"]]=$0}
$1=="SRCRANGE:"{rid[++r]=f["ID"]; range[r]=$0; cidr[r]=f["CIDR"]}
$1=="SVC:"{a=f["ADDR"]; k=key(a)
if ((a in loc) || (home in loc) || f["FLAGS"] ~ /Local|HostPort/) {print "L " $0; if(f["SLOT"]>0) want[f["BEID"]]=1; if(f["ID"]>0) local[f["ID"]]=1; next}
if (f["ID"]>0) at[f["ID"]]=k
s=k " " f["LBALG"] " " f["AFFTimeout"] " " f["COUNT"] " " f["QCOUNT"] " " f["FLAGS"]
if (f["SLOT"]==0) print "S " s; else {m++; row[m]=s; id[m]=f["BEID"]}}
END{for(i=1;i<=m;i++) print "S " row[i] " " ((id[i] in be) ? be[id[i]] : "lost")
for(b in want) if (b in raw) print "L " raw[b]
for(i=1;i<=r;i++) if (rid[i] in local) print "L " range[i]; else print "S range " at[rid[i]] " " cidr[i]}
' step=1 <(printf '%s\n' "$agent" | cut -d' ' -f1,2) step=2 - | sums || return 1
echo "= table"
cilium-dbg shell -- db/show frontends | awk 'NR>1 && NF && !/ Done /' || return 1
}
digest`

const digestShown = "sums of cilium-dbg service list and shell -- lb/maps-dump, made by jq, awk and sha256sum"

// DecodeDigest reads what the node's own script makes of its lists: two sums,
// and what stands beside them.
func DecodeDigest(data []byte) (lb.Digest, error) {
	var d lb.Digest
	var services, dump bytes.Buffer
	seen, section := map[string]bool{}, ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		sum, isSum := strings.CutSuffix(line, "  -")
		switch name, opens := strings.CutPrefix(line, "= "); {
		case opens:
			section = name
			seen[name] = true
		case section == "agent" && isSum && len(sum) == 64:
			d.Agent = sum
		case section == "kernel" && isSum && len(sum) == 64:
			d.Kernel = sum
		case section == "agent":
			_, object, _ := strings.Cut(line, " ")
			if services.Len() > 0 {
				services.WriteByte(',')
			}
			services.WriteString(object)
		case section == "kernel":
			dump.WriteString(line + "\n")
		case section == "table":
			d.Unwritten++
		}
	}
	if d.Agent == "" || d.Kernel == "" || !seen["table"] {
		return lb.Digest{}, errors.New("sums of the lists: not whole")
	}
	var err error
	if d.Frontends, err = DecodeServiceListJSON([]byte("[" + services.String() + "]")); err != nil {
		return lb.Digest{}, err
	}
	if dump.Len() > 0 {
		if d.Dump, err = DecodeMapsDump(dump.Bytes()); err != nil {
			return lb.Digest{}, err
		}
	}
	return d, nil
}
