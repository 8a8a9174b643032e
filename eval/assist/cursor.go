package assist

import "strings"

// A cursor is a position in a text, of which it knows the lines. It makes no nodes, so a copy of
// it can look ahead.
type cursor struct {
	text string
	pos  int
	line int // offset of the line of pos
	end  int // end of the document
	mark int // offset of the mark; -1 without a mark
	// known is a part of a line up to its end. It avoids repeated searches for the end of long
	// lines.
	known Range
}

// skip advances to the next character that is not a space, comment or document marker. It
// reports whether the text has ended.
func (p *cursor) skip() (ended bool) {
	for p.pos < p.end {
		switch c := p.text[p.pos]; {
		case c == ' ' || c == '\t' || c == '\r':
			p.pos++
		case c == '\n':
			p.pos++
			p.line = p.pos
		case c == '#' && p.commentAt(p.pos):
			p.nextLine()
		case p.pos == p.line && p.marker("..."):
			p.end = p.pos
		case p.pos == p.line && p.marker("---"):
			if strings.TrimLeft(p.text[:p.pos], "\uFEFF \t\r\n") != "" && !p.onlyComments() {
				p.end = p.pos
				return true
			}
			p.pos += 3
		case c == '%' && p.pos == p.line:
			p.nextLine()
		default:
			return false
		}
	}
	return true
}

// onlyComments reports whether only comments and directives precede the position.
func (p *cursor) onlyComments() bool {
	for line := range strings.Lines(p.text[:p.pos]) {
		if t := strings.TrimSpace(strings.TrimPrefix(line, "\uFEFF")); t != "" && t[0] != '#' && t[0] != '%' {
			return false
		}
	}
	return true
}

func (p *cursor) marker(m string) bool {
	rest := p.text[p.pos:p.end]
	return strings.HasPrefix(rest, m) && (len(rest) == 3 || strings.ContainsRune(" \t\r\n", rune(rest[3])))
}

func (p *cursor) commentAt(i int) bool {
	return p.text[i] == '#' && (i == p.line || strings.IndexByte(" \t", p.text[i-1]) >= 0)
}

func (p *cursor) nextLine() {
	p.pos = p.lineEnd(p.pos)
	if p.pos < p.end {
		p.pos++
		p.line = p.pos
	}
}

// lineEnd returns the offset of the end of the line of i, without "\n".
func (p *cursor) lineEnd(i int) int {
	if p.known.Start <= i && i <= p.known.End && p.known.End <= p.end {
		return p.known.End
	}
	p.known = Range{i, p.end}
	if n := strings.IndexByte(p.text[i:p.end], '\n'); n >= 0 {
		p.known.End = i + n
	}
	return p.known.End
}

func (p *cursor) column() int { return p.pos - p.line }

// spaces skips spaces and reports whether this line has more text.
func (p *cursor) spaces() bool {
	for p.pos < p.end && (p.text[p.pos] == ' ' || p.text[p.pos] == '\t' || p.text[p.pos] == '\r') {
		p.pos++
	}
	return p.pos < p.end && p.text[p.pos] != '\n' && !p.commentAt(p.pos)
}

// breaksAfter reports whether the character at i ends a word like a space does, after a dash or
// a colon.
func (p *cursor) breaksAfter(i int) bool {
	return i >= p.end || i == p.mark || strings.IndexByte(" \t\r\n", p.text[i]) >= 0
}

func (p *cursor) dash() bool {
	return p.pos < p.end && p.text[p.pos] == '-' && p.breaksAfter(p.pos+1)
}

func (p *cursor) to(offset int) {
	if i := strings.LastIndexByte(p.text[p.pos:offset], '\n'); i >= 0 {
		p.line = p.pos + i + 1
	}
	p.pos = offset
}

// closing finds the end of the quoted text that starts at an offset. Its following lines must be
// to the right of a column.
func (p *cursor) closing(at, limit, outer int) (end int, ok bool) {
	quote := p.text[at]
	for i := at + 1; i < limit; i++ {
		switch c := p.text[i]; {
		case c == '\\' && quote == '"' && i+1 < limit && p.text[i+1] != '\n':
			i++
		case c == quote && quote == '\'' && i+1 < limit && p.text[i+1] == quote:
			i++
		case c == quote:
			return i + 1, true
		case c == '\n' && p.leaves(i+1, limit, outer):
			return 0, false
		}
	}
	return 0, false
}

// leaves reports whether the line at an offset starts at or left of a column. Empty lines do
// not.
func (p *cursor) leaves(at, limit, column int) bool {
	i := at
	for i < limit && (p.text[i] == ' ' || p.text[i] == '\t') {
		i++
	}
	return i < limit && p.text[i] != '\n' && p.text[i] != '\r' && i-at <= column
}

// trimmed removes spaces from the end of a range.
func (p *cursor) trimmed(start, end int) int {
	return start + len(strings.TrimRight(p.text[start:end], " \t\r\n"))
}

// plainEnd returns the end of a plain text on one line: the start of a comment, or the end of
// the line.
func (p *cursor) plainEnd(at int) int {
	end := p.lineEnd(at)
	for i := at + 1; i < end; i++ {
		if p.text[i] == '#' && (p.text[i-1] == ' ' || p.text[i-1] == '\t') {
			return p.trimmed(at, i)
		}
	}
	return p.trimmed(at, end)
}

// keyAt is the position of a key.
type keyAt struct {
	start, end, colon int
	style             style
}

// key looks for a key with its colon at the position, or returns nil.
func (p *cursor) key() *keyAt {
	if p.pos >= p.end {
		return nil
	}
	k := &keyAt{start: p.pos}
	end := p.lineEnd(p.pos)
	switch c := p.text[p.pos]; c {
	case '"', '\'':
		closing, ok := p.closing(p.pos, end, -1)
		if !ok {
			return nil
		}
		k.style, k.end = quoteStyle(c), closing
		for k.colon = closing; k.colon < end && p.text[k.colon] == ' '; {
			k.colon++
		}
		if k.colon < end && p.text[k.colon] == ':' && p.breaksAfter(k.colon+1) {
			return k
		}
		return nil
	case '[', '{', '|', '>', '#', ':':
		return nil
	}
	for i := p.pos; i < end; i++ {
		switch {
		case p.text[i] == ':' && p.breaksAfter(i+1):
			k.colon, k.end = i, p.trimmed(p.pos, i)
			return k
		case p.text[i] == '#' && p.commentAt(i):
			return nil
		}
	}
	return nil
}
