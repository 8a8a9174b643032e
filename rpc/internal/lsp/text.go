package lsp

import (
	"sort"
	"strings"
	"unicode/utf8"

	"go.lsp.dev/protocol"
)

// A Text is the text of a document with an index of its lines. It is immutable and safe for
// concurrent use.
//
// It converts between three kinds of positions. Editors count lines from 0 and, in a line, the
// code units of the negotiated [Encoding]. Findings count lines and characters from 1. Go counts
// bytes. Every conversion accepts any numbers: an invalid position means the nearest valid one.
type Text struct {
	content  string
	encoding Encoding // of the editor's positions
	lines    []int    // offset of the start of each line
}

// NewText returns a Text. As in the Language Server Protocol, lines end with LF, CR LF or CR.
func NewText(content string, e Encoding) *Text {
	t := &Text{content: content, encoding: e, lines: make([]int, 1, 1+strings.Count(content, "\n"))}
	if strings.IndexByte(content, '\r') < 0 { // the common case: NewText runs for every key
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

// String returns the whole text.
func (t *Text) String() string { return t.content }

// Lines returns the number of lines: at least one, which may be empty.
func (t *Text) Lines() int { return len(t.lines) }

// Line returns line n, counted from 0, without its end, or "" if it does not exist.
func (t *Text) Line(n int) string {
	if n < 0 || n >= len(t.lines) {
		return ""
	}
	begin, end := t.span(n)
	return t.content[begin:end]
}

// span returns the offsets of a line's start and of its end-of-line.
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

// Offset returns the byte offset of an editor's position. A position within a character means
// the start of the character.
func (t *Text) Offset(p protocol.Position) int {
	if int64(p.Line) >= int64(len(t.lines)) {
		return len(t.content)
	}
	begin, end := t.span(int(p.Line))
	left := int64(p.Character)
	for i := begin; i < end; {
		r, size := utf8.DecodeRuneInString(t.content[i:end])
		if left -= int64(t.encoding.units(r, size)); left < 0 {
			return i
		}
		i += size
	}
	return end
}

// Position returns the editor's position of a byte offset. A byte within a character means its
// start. A byte within an end-of-line means the end of the line.
func (t *Text) Position(offset int) protocol.Position {
	line := t.lineAt(offset)
	begin, end := t.span(line)
	units := 0
	for i := begin; i < end; {
		r, size := utf8.DecodeRuneInString(t.content[i:end])
		if i+size > offset {
			break
		}
		units += t.encoding.units(r, size)
		i += size
	}
	return protocol.Position{Line: uint32(line), Character: uint32(units)}
}

// lineAt returns the line that contains a byte.
func (t *Text) lineAt(offset int) int {
	return max(0, sort.SearchInts(t.lines, offset+1)-1)
}

// Range returns the range between two byte offsets.
func (t *Text) Range(begin, end int) protocol.Range {
	return protocol.Range{Start: t.Position(begin), End: t.Position(end)}
}

// Place returns the byte offset of a line and column of a finding. Both count from 1; the column
// counts characters, without a byte order mark.
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

// Edit returns the text with a range replaced. It swaps the ends of a range whose end comes
// first.
func (t *Text) Edit(r protocol.Range, with string) *Text {
	begin, end := t.Offset(r.Start), t.Offset(r.End)
	if end < begin {
		begin, end = end, begin
	}
	return NewText(t.content[:begin]+with+t.content[end:], t.encoding)
}
