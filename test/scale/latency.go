package main

import (
	"strconv"
	"strings"
	"time"
)

// What an agent's pod takes, as measured on a cluster of three nodes with
// Cilium 1.20.2 and up to 5000 Services: an exec of `true`, the start of one
// command line, what it adds for each Service, and how fast an answer comes
// through the API server.
const (
	execTime       = 150 * time.Millisecond
	startTime      = 180 * time.Millisecond
	otherTime      = 10 * time.Millisecond
	bytesPerSecond = 23 << 20
)

var perService = map[string]time.Duration{
	"service list": 118 * time.Microsecond,
	"bpf lb":       67 * time.Microsecond,
	"shell -- db":  15 * time.Microsecond,
	"shell -- lb":  67 * time.Microsecond, // taken for that of bpf lb list
}

// commandsTime is how long the commands of a script take on a node before
// anything is sent. argv is that of the script's exec.
func commandsTime(argv []string, services int) time.Duration {
	var sum time.Duration
	for i := firstCommand; i+3 < len(argv); {
		n, err := strconv.Atoi(argv[i+3])
		if err != nil || i+4+n > len(argv) {
			break
		}
		words := argv[i+4 : i+4+n]
		i += 4 + n
		lines := []string{strings.Join(words[1:], " ")}
		if words[0] != "%cilium" { // a script of its own, which may call the agent several times
			sum += otherTime
			lines = strings.Split(strings.Join(words, " "), "cilium-dbg ")[1:]
		}
		for _, line := range lines {
			sum += startTime
			for prefix, each := range perService {
				if strings.HasPrefix(line, prefix) {
					sum += each * time.Duration(services)
				}
			}
		}
	}
	return sum
}

func transferTime(bytes int) time.Duration {
	return time.Duration(bytes) * time.Second / bytesPerSecond
}
