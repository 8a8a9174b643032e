package report

import (
	"fmt"
	"strings"

	"waza/runner/record"
)

// mostRivals is how many cells a sentence names.
const mostRivals = 8

// tuneLines say which cell of the matrix is best, and which may be as good. show makes a
// cell's name fit to be shown.
func tuneLines(t *record.TuneResult, show func(string) string) []string {
	if t == nil {
		return nil
	}
	lines := []string{"Best cell: " + show(t.Best)}
	switch n := len(t.Rivals); {
	case t.Note != "":
		lines = append(lines, t.Note)
	case n > 0:
		var names []string
		for _, r := range t.Rivals[:min(n, mostRivals)] {
			names = append(names, show(r))
		}
		more := ""
		if n > mostRivals {
			more = fmt.Sprintf(" and %d more", n-mostRivals)
		}
		lines = append(lines, "May be as good, these trials do not separate them: "+strings.Join(names, "; ")+more)
	}
	return lines
}
