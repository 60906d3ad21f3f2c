// Package words is what sentences of all rooms share: a number with its noun,
// and how far apart two spellings are.
package words

import (
	"fmt"
	"strings"
)

// Count is a number with its noun: "1 node", "3 nodes", "2 addresses".
func Count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Edits is the number of bytes to insert, drop or replace between a and b.
func Edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := diagonal
			if a[i] != b[j] {
				next++
			}
			diagonal = row[j+1]
			row[j+1] = min(next, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
