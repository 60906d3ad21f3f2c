package agent

// LogLine is one line of an agent's log that warns or worse, or that carries no
// level, such as the last words of a process that crashed.
type LogLine struct {
	Level   string // error, warning, fatal, panic; "" where the line tells none
	Message string // the whole line where it has no fields
	Fields  map[string]string
}

// Error is the line's error field, "" if it has none.
func (l LogLine) Error() string { return l.Fields["error"] }
