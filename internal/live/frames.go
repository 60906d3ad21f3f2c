package live

import (
	"bytes"
	"strconv"
	"strings"
)

// frame is what one command sent on one stream.
type frame struct {
	data  []byte
	begun bool
	ended bool
	code  int  // exit code, if ended and not late
	late  bool // never started, the time was up
}

// frames reads the stream of a script that had count commands. What stands
// outside of any frame is ignored: a login shell's greeting, or the tail of a
// broken stream. The data are parts of stream, not copies.
func frames(stream []byte, nonce string, count int) (fs []frame, binary string) {
	fs = make([]frame, count)
	mark := []byte("\n" + nonce + " ")
	open, start := -1, 0
	for at := 0; ; {
		i := bytes.Index(stream[at:], mark)
		if i < 0 {
			break
		}
		i += at
		line, after, whole := bytes.Cut(stream[i+len(mark):], []byte("\n"))
		if !whole {
			break
		}
		at = len(stream) - len(after)
		word, rest, _ := strings.Cut(string(line), " ")
		switch word {
		case "hello":
			binary = rest
		case "begin":
			id, err := strconv.Atoi(rest)
			if open >= 0 || err != nil || id < 0 || id >= count || fs[id].begun {
				continue
			}
			open, start = id, at
			fs[id].begun = true
		case "end":
			id, code, _ := strings.Cut(rest, " ")
			if open < 0 || id != strconv.Itoa(open) {
				continue
			}
			f := &fs[open]
			f.data, f.ended = stream[start:i], true
			f.late = code == "late"
			if n, err := strconv.Atoi(code); err == nil {
				f.code = n
			} else if !f.late {
				f.ended = false
			}
			open = -1
		}
	}
	if open >= 0 {
		fs[open].data = stream[start:]
	}
	return fs, binary
}
