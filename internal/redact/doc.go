// Package redact replaces the names and addresses of a cluster, so that its
// evidence can be shown to strangers and still be judged.
//
// What is replaced is replaced everywhere in the same way, whatever the file:
// a Service's name in services.yaml, in an iptables comment and in a line of an
// agent's log stay one name. A replacement depends on the key and on what is
// replaced alone, so a second recording with the same key lines up with the
// first.
//
//   - Addresses keep family, prefixes and class: two addresses of one subnet are
//     in one subnet afterwards, whatever its length. Loopback, link-local,
//     multicast and unspecified addresses stay.
//   - Names are replaced part by part, a part being what stands between dashes
//     and dots, so web and web-canary still begin alike. Words that Kubernetes
//     and Cilium themselves print stay: they tell nothing of the cluster.
//   - Chain hashes of kube-proxy, MAC addresses and UUIDs are replaced, secrets
//     dropped.
//
// A Redactor first learns: names stand for themselves in objects and in columns
// of known answers, and only by knowing them are they found in free text. What
// the first pass has not seen as a name and what looks like no address stays as
// it is; docs/redaction.md tells what that means.
package redact
