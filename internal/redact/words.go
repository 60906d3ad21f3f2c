package redact

import (
	_ "embed"
	"iter"
	"regexp"
	"strings"
	"sync"
)

//go:embed words.txt
var wordList string

// words that Kubernetes, Cilium and the kernel print, and plain English.
var vocabulary = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(wordList) {
		if line[0] == '#' {
			continue
		}
		for _, w := range strings.Fields(line) {
			all[w] = true
		}
	}
	return all
})

// versions and sizes are words of their own in every cluster.
var counted = regexp.MustCompile(`^(?:v[0-9]{1,3}(?:(?:alpha|beta|rc)[0-9]*)?|[0-9]{1,6}(?:[smhdx]|ms|us|ns|ki|mi|gi|ti)|ipv?[46]|eth[0-9]+|ens?[0-9]+\w{0,4}|enp\w{1,6}|bond[0-9]+|lb[46]?|tcp[46]?|udp[46]?|rke[12]|[a-z]{2,4}64|sha[0-9]+|h2c?|md5)$`)

// common holds for a part of a name that tells nothing: a word of the
// vocabulary, a version, a device. A part of one or two letters is a name's
// own, whatever it means in a sentence.
func common(part string) bool {
	if len(part) <= 2 {
		return short.MatchString(part)
	}
	return printed(part)
}

var short = regexp.MustCompile(`^(?i:ip|lb|ct|io|tc|l[2-7]|v[0-9]|h2|ui|lo|[0-9][smhdx])$`)

// printed holds for what evidence says anyway.
func printed(word string) bool {
	low := strings.ToLower(word)
	return vocabulary()[low] || counted.MatchString(low)
}

// stays holds for names that are the same in every cluster: those of Kubernetes
// and Cilium themselves, single words that are printed anyway, and numbers. A
// name of several words is a name, however common each of them is.
func stays(name string) bool {
	if len(name) < 2 || numeric(name) || version.MatchString(name) || moment.MatchString(name) || printed(name) {
		return true
	}
	if !plain(name) {
		return false
	}
	first, _, _ := strings.Cut(name, "-")
	return strings.Contains(name, ".") || installed[first] || installed[name]
}

var version = regexp.MustCompile(`^v?[0-9]+(?:[.][0-9]+)+(?:[-+](?:rc|alpha|beta|k3s|rke2r|eks|gke)[-.0-9a-f]*)?$`)

// moment is a date, and the beginning of a time stamp.
var moment = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2})?$`)

// installed are first words, and whole names, of what Kubernetes and Cilium
// install under names that everybody knows.
var installed = map[string]bool{
	"kube": true, "kubernetes": true, "cilium": true, "hubble": true, "clustermesh": true, "coredns": true, "kubelet": true, "rke2": true, "metrics": true,
	"kubeadm": true, "virt": true, "svclb": true, "node-local-dns": true, "local-path": true, "http-metrics": true, "https-metrics": true, "dns-tcp": true, "peer-service": true, "control-plane": true, "envoy-metrics": true, "istio-proxy": true, "linkerd-proxy": true,
	"http": true, "https": true, "grpc": true, "dns": true, "tcp": true, "udp": true,
}

// plain holds for names of common words and short numbers alone.
func plain(name string) bool {
	for p := range pieces(name) {
		if !common(p) && (!numeric(p) || len(p) > 2) {
			return false
		}
	}
	return true
}

// nameLike holds for what can be the name of an object, or a host.
func nameLike(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	letters := false
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
			letters = true
		case c >= '0' && c <= '9', c == '-', c == '.', c == '_':
		default:
			return false
		}
	}
	return letters
}

func numeric(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// pieces are the parts of a name without what separates them.
func pieces(name string) iter.Seq[string] {
	return strings.FieldsFuncSeq(name, func(c rune) bool { return c == '-' || c == '.' || c == '_' })
}

// pieces2 are the parts of a name, each with the separators behind it.
func pieces2(name, separators string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name != "" {
			i := strings.IndexAny(name, separators)
			if i < 0 {
				yield(name)
				return
			}
			for i < len(name) && strings.IndexByte(separators, name[i]) >= 0 {
				i++
			}
			if !yield(name[:i]) {
				return
			}
			name = name[i:]
		}
	}
}
