package lsp

import (
	"sort"
	"strings"
	"unicode/utf8"

	"go.lsp.dev/protocol"
)

// Text is the text of a document with what it takes to find places in it. It
// never changes, so all may read it at once.
//
// Three ways to name a place meet here. Editors count lines from 0 and, in a
// line, the code units of the [Encoding] that was agreed upon; findings count
// lines and characters from 1; Go counts bytes. Every conversion takes any
// numbers, also those of no place: they mean the nearest there is.
type Text struct {
	content string
	lines   []int // offset of the begin of each line
}

// NewText makes a text. Lines end as the Language Server Protocol has it: with
// LF, CR LF or CR.
func NewText(content string) *Text {
	t := &Text{content: content, lines: make([]int, 1, 1+strings.Count(content, "\n"))}
	if strings.IndexByte(content, '\r') < 0 { // as most are: this is made anew with every key
		for i := 0; ; {
			end := strings.IndexByte(content[i:], '\n')
			if end < 0 {
				return t
			}
			i += end + 1
			t.lines = append(t.lines, i)
		}
	}
	for i := range len(content) {
		if content[i] == '\n' || content[i] == '\r' && !strings.HasPrefix(content[i+1:], "\n") {
			t.lines = append(t.lines, i+1)
		}
	}
	return t
}

// String gives the whole text.
func (t *Text) String() string { return t.content }

// Lines says how many lines there are; at least one, which may be empty.
func (t *Text) Lines() int { return len(t.lines) }

// Line gives a line counted from 0, without its end; "" where there is none.
func (t *Text) Line(n int) string {
	if n < 0 || n >= len(t.lines) {
		return ""
	}
	begin, end := t.span(n)
	return t.content[begin:end]
}

// span gives where a line begins and where its end-of-line does.
func (t *Text) span(n int) (begin, end int) {
	begin, end = t.lines[n], len(t.content)
	if n+1 < len(t.lines) {
		end = t.lines[n+1]
		for end > begin && (t.content[end-1] == '\n' || t.content[end-1] == '\r') {
			end--
		}
	}
	return begin, end
}

// Offset gives the byte that a position of the editor's means: the begin of the
// character, where it points into one.
func (t *Text) Offset(p protocol.Position, e Encoding) int {
	if int64(p.Line) >= int64(len(t.lines)) {
		return len(t.content)
	}
	begin, end := t.span(int(p.Line))
	left := int64(p.Character)
	for i := begin; i < end; {
		r, size := utf8.DecodeRuneInString(t.content[i:end])
		if left -= int64(e.units(r, size)); left < 0 {
			return i
		}
		i += size
	}
	return end
}

// Position gives a byte's position as the editor counts it. A byte within a
// character means the begin of it, one within the end of a line that end.
func (t *Text) Position(offset int, e Encoding) protocol.Position {
	line := t.lineAt(offset)
	begin, end := t.span(line)
	units := 0
	for i := begin; i < end; {
		r, size := utf8.DecodeRuneInString(t.content[i:end])
		if i+size > offset {
			break
		}
		units += e.units(r, size)
		i += size
	}
	return protocol.Position{Line: uint32(line), Character: uint32(units)}
}

// lineAt gives the line that holds a byte.
func (t *Text) lineAt(offset int) int {
	return max(0, sort.SearchInts(t.lines, offset+1)-1)
}

// Range gives the range from one byte to another.
func (t *Text) Range(begin, end int, e Encoding) protocol.Range {
	return protocol.Range{Start: t.Position(begin, e), End: t.Position(end, e)}
}

// Place gives the byte at a line and a column as findings count them: both from
// 1, the column in characters, a byte order mark not among them.
func (t *Text) Place(line, column int) int {
	if line < 1 {
		return 0
	}
	if line > len(t.lines) {
		return len(t.content)
	}
	begin, end := t.span(line - 1)
	if line == 1 && strings.HasPrefix(t.content, "\ufeff") {
		begin += len("\ufeff")
	}
	for ; column > 1 && begin < end; column-- {
		_, size := utf8.DecodeRuneInString(t.content[begin:end])
		begin += size
	}
	return begin
}

// Edit gives the text with what stands in a range replaced. A range that ends
// before it begins is taken the other way round.
func (t *Text) Edit(r protocol.Range, e Encoding, with string) *Text {
	begin, end := t.Offset(r.Start, e), t.Offset(r.End, e)
	if end < begin {
		begin, end = end, begin
	}
	return NewText(t.content[:begin] + with + t.content[end:])
}
