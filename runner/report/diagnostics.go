package report

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/text"
)

// Diagnostics prints findings like a compiler: place, severity, message and code, then the
// source line with the place underlined, then a suggestion. It omits sources that cannot be
// read.
//
//	evals/demo.yaml:4:3: warning: unknown key "trials_per_tsk" [unknown-key]
//	    4 |   trials_per_tsk: 3
//	      |   ^~~~~~~~~~~~~~
//	      = did you mean "trials_per_task"?
func Diagnostics(w io.Writer, ds decode.Diagnostics, o Options) error {
	sources := sourceLines{}
	p := printer{Options: o}
	for _, d := range ds {
		p.diagnostic(d, sources)
	}
	_, err := io.WriteString(w, p.String())
	return err
}

// DiagnosticsSummary returns a line with the number of findings, or "" if there are no findings.
func DiagnosticsSummary(ds decode.Diagnostics) string {
	n := map[decode.Severity]int{}
	for _, d := range ds {
		n[d.Severity]++
	}
	var parts []string
	for _, x := range []struct {
		s         decode.Severity
		one, many string
	}{{decode.Error, "error", "errors"}, {decode.Warning, "warning", "warnings"}, {decode.Info, "remark", "remarks"}} {
		if n[x.s] > 0 {
			parts = append(parts, text.Count(n[x.s], x.one, x.many))
		}
	}
	return strings.Join(parts, ", ")
}

func severityColour(s decode.Severity) colour {
	switch s {
	case decode.Error:
		return red
	case decode.Warning:
		return yellow
	}
	return cyan
}

func (p *printer) diagnostic(d decode.Diagnostic, sources sourceLines) {
	place := Clean(d.File)
	if d.Line > 0 {
		place += fmt.Sprintf(":%d:%d", d.Line, d.Column)
	}
	p.printf("%s: %s: %s %s\n", p.paint(bold, place), p.paint(severityColour(d.Severity), string(d.Severity)),
		Clean(d.Message), p.paint(dim, "["+string(d.Code)+"]"))
	margin := "      "
	if text, ok := sources.line(d.File, d.Line); ok {
		number := fmt.Sprintf("%5d", d.Line)
		margin = strings.Repeat(" ", len(number)+1)
		room := defaultSourceColumns
		if p.Width > 0 {
			room = p.Width - len(margin) - 2
		}
		shown, mark := excerpt(text, d.Column, d.EndColumn, room)
		p.printf("%s\n", strings.TrimRight(p.paint(dim, number+" |")+" "+shown, " "))
		p.printf("%s%s %s\n", margin, p.paint(dim, "|"), p.paint(severityColour(d.Severity), mark))
	}
	if d.Suggestion != "" {
		p.printf("%s%s did you mean %s?\n", margin, p.paint(dim, "="), inert(fmt.Sprintf("%q", d.Suggestion)))
	}
}

const (
	// defaultSourceColumns is the most columns shown of a source line if the width of the output
	// is unknown.
	defaultSourceColumns = 120
	// leastSourceColumns is the fewest columns shown of a source line.
	leastSourceColumns = 20
	tabWidth           = 4
)

// A cell is a displayed character of a source line.
type cell struct {
	text string
	cols int
}

// excerpt returns the shown part of a source line and the marks below it: a caret under the
// character at column, and tildes up to end. Columns count characters from 1. end is exclusive;
// 0 means unknown. Lines longer than room are cut on the sides, so that the caret stays visible.
func excerpt(line string, column, end, room int) (shown, mark string) {
	room = max(room, leastSourceColumns)
	line, before, after := near(line, column)
	cells := cellsOf(line)
	from := min(max(0, column-1-before), len(cells))
	to := min(max(from+1, end-1-before), max(len(cells), from+1))
	first, last := window(cells, from, room)
	var s, m strings.Builder
	if first > 0 || before > 0 {
		s.WriteString("…")
		m.WriteString(" ")
	}
	for i := first; i < last; i++ {
		s.WriteString(cells[i].text)
		n := cells[i].cols
		if i == from {
			n = max(n, 1) // a combining character takes no column
		}
		m.WriteString(strings.Repeat(markOf(i, from, to), n))
	}
	if from == len(cells) { // the place is the end of the line
		m.WriteString("^")
	}
	if last < len(cells) || after {
		s.WriteString("…")
	}
	return s.String(), singleCaret(strings.TrimRight(m.String(), " "))
}

// nearBytes limits how much of a line is read on each side of the caret. A file can be a single
// line of megabytes with thousands of findings.
const nearBytes = 2048

// near returns the part of a line around a column, the number of characters before the part, and
// whether the line continues after it.
func near(line string, column int) (part string, before int, after bool) {
	if len(line) <= 2*nearBytes {
		return line, 0, false
	}
	caret := 0
	for n := 1; n < column && caret < len(line); n++ {
		_, size := utf8.DecodeRuneInString(line[caret:])
		caret += size
	}
	from, to := max(0, caret-nearBytes), min(len(line), caret+nearBytes)
	for from > 0 && !utf8.RuneStart(line[from]) {
		from--
	}
	for to < len(line) && !utf8.RuneStart(line[to]) {
		to++
	}
	return line[from:to], utf8.RuneCountInString(line[:from]), to < len(line)
}

func cellsOf(line string) []cell {
	var cells []cell
	commands := map[int]bool{} // positions of the second # of commands
	for _, found := range hashCommand().FindAllStringIndex(line, -1) {
		commands[found[0]+1] = true
	}
	at := 0
	for i := 0; i < len(line); {
		_, size := utf8.DecodeRuneInString(line[i:])
		c := cell{text: line[i : i+size]}
		switch {
		case c.text == "\t":
			c.text = strings.Repeat(" ", tabWidth-at%tabWidth)
		case commands[i]:
			c.text = `\x23`
		default:
			c.text = Clean(c.text)
		}
		c.cols = Columns(c.text)
		at += c.cols
		cells = append(cells, c)
		i += size
	}
	return cells
}

// window chooses the cells to show: all, or as many as fit into room around the cell at the
// caret, with a few more after it than before.
func window(cells []cell, caret, room int) (first, last int) {
	total := 0
	for _, c := range cells {
		total += c.cols
	}
	if total <= room {
		return 0, len(cells)
	}
	room -= 2 // an ellipsis on each side
	first = min(caret, len(cells))
	n := 0
	for first > 0 && n+cells[first-1].cols <= room*2/5 {
		first--
		n += cells[first].cols
	}
	last = min(caret, len(cells))
	for last < len(cells) && n+cells[last].cols <= room {
		n += cells[last].cols
		last++
	}
	for first > 0 && n+cells[first-1].cols <= room {
		first--
		n += cells[first].cols
	}
	return first, last
}

func markOf(i, from, to int) string {
	switch {
	case i == from:
		return "^"
	case i > from && i < to:
		return "~"
	}
	return " "
}

// singleCaret keeps the first of several carets below a wide character.
func singleCaret(mark string) string {
	at := strings.IndexByte(mark, '^')
	if at < 0 {
		return mark
	}
	return mark[:at+1] + strings.ReplaceAll(mark[at+1:], "^", "~")
}

// maxSourceBytes is the size of the largest file whose lines are shown.
const maxSourceBytes = 8 << 20

// sourceLines holds the lines of files with findings; nil for files that cannot be shown.
type sourceLines map[string][]string

func (s sourceLines) line(file string, number int) (string, bool) {
	if number < 1 {
		return "", false
	}
	lines, ok := s[file]
	if !ok {
		lines = readLines(filepath.FromSlash(file))
		s[file] = lines
	}
	if number > len(lines) {
		return "", false
	}
	return strings.TrimSuffix(lines[number-1], "\r"), true
}

func readLines(path string) []string {
	data, err := files.Read(path, maxSourceBytes)
	if err != nil || !utf8.Valid(data) {
		return nil
	}
	return strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n")
}
