package cilium

import "strings"

// columns are the columns of a table whose cells may be empty or hold blanks.
// Where one begins is told by the header; positions count characters, as the
// writers of these tables do.
type columns []column

type column struct {
	title string
	at    int
}

// findColumns takes a line for a header if its titles, parted by at least two
// blanks, begin with the first of those needed and have all of them; else nil.
func findColumns(line string, needed ...string) columns {
	var cs columns
	has := map[string]bool{}
	for at, runes := 0, []rune(line); at < len(runes); {
		if runes[at] == ' ' {
			at++
			continue
		}
		end := at
		for end < len(runes) && !(runes[end] == ' ' && (end+1 == len(runes) || runes[end+1] == ' ')) {
			end++
		}
		title := string(runes[at:end])
		has[title] = true
		cs = append(cs, column{title, at})
		at = end
	}
	for _, title := range needed {
		if !has[title] {
			return nil
		}
	}
	if cs[0].title != needed[0] {
		return nil
	}
	cs[0].at = 0
	return cs
}

// cells cuts a row. A row shorter than the header has empty cells at its end.
func (cs columns) cells(row string) map[string]string {
	runes := []rune(row)
	cells := make(map[string]string, len(cs))
	for i, c := range cs {
		end := len(runes)
		if i+1 < len(cs) {
			end = min(cs[i+1].at, end)
		}
		if c.at < end {
			cells[c.title] = strings.TrimSpace(string(runes[c.at:end]))
		}
	}
	return cells
}
