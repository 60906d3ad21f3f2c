package main

import (
	"bufio"
	"bytes"
	"cmp"
	"slices"
)

// template is what a script wrote, with the places of its nonce and of its
// node's address, which are others in each exec.
type template struct {
	data   []byte
	places []place // sorted
}

type place struct {
	at, length int
	nonce      bool
}

func newTemplate(data []byte, nonce, ip string) template {
	t := template{data: data}
	for _, word := range []string{nonce, ip} {
		for at := 0; ; {
			i := bytes.Index(data[at:], []byte(word))
			if i < 0 {
				break
			}
			t.places = append(t.places, place{at + i, len(word), word == nonce})
			at += i + len(word)
		}
	}
	slices.SortFunc(t.places, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	return t
}

// write leaves errors to w, which keeps the first.
func (t template) write(w *bufio.Writer, nonce, ip string) {
	done := 0
	for _, p := range t.places {
		_, _ = w.Write(t.data[done:p.at])
		word := ip
		if p.nonce {
			word = nonce
		}
		_, _ = w.WriteString(word)
		done = p.at + p.length
	}
	_, _ = w.Write(t.data[done:])
}
