package help

import (
	"fmt"
	"io"
	"strings"

	"waza/cmd/waza/terminal"
	"waza/runner/report"
)

// Lines of help have at most mostWidth columns, even on wider terminals, because longer lines
// are hard to read. Without a terminal they have usualWidth.
const (
	leastWidth = 40
	usualWidth = 80
	mostWidth  = 100
)

// widthOf returns the number of columns for help on w.
func widthOf(w io.Writer) int {
	width := terminal.Options(w).Width
	if width <= 0 {
		width = usualWidth
	}
	return min(max(width, leastWidth), mostWidth)
}

// item writes a text beside its term, or below the term if there is no room.
func item(w io.Writer, left, text string, column, width int) {
	if width < 2*column {
		column = 6
	}
	lead := left + strings.Repeat(" ", max(0, column-report.Columns(left)))
	if report.Columns(left) > column-2 {
		fmt.Fprintln(w, left)
		lead = strings.Repeat(" ", column)
	}
	for _, line := range report.Wrap(text, width-column) {
		fmt.Fprintln(w, strings.TrimRight(lead+line, " "))
		lead = strings.Repeat(" ", column)
	}
}

// prose writes a description. It wraps paragraphs that have a line that is too long. In a line
// that starts with a blank, a text after two or more blanks explains the text before it and is
// wrapped in its column. Commands are left as they are.
func prose(w io.Writer, text string, width int) {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); {
		n := 1
		if indented(lines[i]) {
			left, explanation, column := explained(lines[i])
			for explanation != "" && i+n < len(lines) && indentation(lines[i+n]) == column {
				explanation += " " + strings.TrimSpace(lines[i+n])
				n++
			}
			if tooLong(lines[i:i+n], width) && explanation != "" {
				item(w, left, explanation, column, width)
			} else {
				fmt.Fprintln(w, strings.Join(lines[i:i+n], "\n"))
			}
			i += n
			continue
		}
		for lines[i] != "" && i+n < len(lines) && lines[i+n] != "" && !indented(lines[i+n]) {
			n++
		}
		if paragraph := lines[i : i+n]; tooLong(paragraph, width) {
			paragraph = report.Wrap(strings.Join(paragraph, " "), width)
			fmt.Fprintln(w, strings.Join(paragraph, "\n"))
		} else {
			fmt.Fprintln(w, strings.Join(paragraph, "\n"))
		}
		i += n
	}
}

func indented(line string) bool { return strings.HasPrefix(line, " ") }

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// explained splits a line: " 0 all tasks passed" is " 0" with a text at column 7.
func explained(line string) (left, text string, column int) {
	from := indentation(line)
	at := strings.Index(line[from:], "  ")
	if at < 0 {
		return line, "", 0
	}
	left = line[:from+at]
	text = strings.TrimLeft(line[from+at:], " ")
	return left, text, report.Columns(line[:len(line)-len(text)])
}

func tooLong(lines []string, width int) bool {
	for _, l := range lines {
		if report.Columns(l) > width {
			return true
		}
	}
	return false
}
