package assist

import "strings"

// maxAhead limits the search for the end of a quoted text. A longer text ends with its first
// line.
const maxAhead = 64 << 10

// leaf makes the scalar of a range. It does not change the position.
func (s *scanner) leaf(r Range, st style) *node {
	n := &node{kind: scalar, style: st, span: r, raw: s.text[r.Start:r.End]}
	if s.mark >= 0 && r.Start <= s.mark && s.mark < max(r.End, r.Start+1) {
		s.found = n
	}
	return n
}

// inline scans the value on this line: a scalar, an alias, or a bracketed list or map. outer is
// the column of the node that contains it; lines to the right of that can continue the value.
func (s *scanner) inline(outer int) *node {
	var n *node
	switch c := s.text[s.pos]; c {
	case '[', '{':
		n = flow{s, outer}.collection()
		s.rest()
	case '"', '\'':
		n = s.leaf(Range{s.pos, s.quoted(outer)}, quoteStyle(c))
		s.to(n.span.End)
		s.rest()
	case '|', '>':
		n = s.literal(outer)
	case '*':
		n = s.plainLine()
		n.kind = alias
	default:
		n = s.plain(outer)
	}
	s.name(n)
	return n
}

func quoteStyle(c byte) style {
	if c == '"' {
		return doubleQuoted
	}
	return singleQuoted
}

// rest skips the remainder of a line after the end of a value. YAML allows only a comment there.
func (s *scanner) rest() {
	if s.spaces() {
		s.leaf(Range{s.pos, s.plainEnd(s.pos)}, plain)
	}
	s.pos = s.lineEnd(s.pos)
}

// quoted returns the end of the quoted text that starts at the position.
func (s *scanner) quoted(outer int) int {
	if end, ok := s.closing(s.pos, min(s.end, s.pos+maxAhead), outer); ok {
		return end
	}
	return s.trimmed(s.pos, s.lineEnd(s.pos))
}

// plainLine scans a plain text that ends with its line.
func (s *scanner) plainLine() *node {
	n := s.leaf(Range{s.pos, s.plainEnd(s.pos)}, plain)
	s.pos = s.lineEnd(s.pos)
	return n
}

// plain scans a plain text and the following lines right of a column. Unlike in YAML, lines that
// look like keys or items do not continue the text, because somebody may be typing above them.
func (s *scanner) plain(outer int) *node {
	start := s.pos
	end := s.plainEnd(start)
	for s.trimmed(start, s.lineEnd(end)) == end {
		ahead := s.cursor
		ahead.to(s.lineEnd(end))
		if ahead.skip() || ahead.column() <= outer || ahead.dash() || ahead.key() != nil || s.commented(end, ahead.pos) {
			break
		}
		end = ahead.plainEnd(ahead.pos)
	}
	n := s.leaf(Range{start, end}, plain)
	s.to(s.lineEnd(end))
	return n
}

// commented reports whether a comment, which ends a plain text, is between two offsets.
func (s *scanner) commented(from, to int) bool {
	return strings.Contains(s.text[from:to], "#")
}

// literal scans a text after a bar or an angle bracket: all lines right of a column.
func (s *scanner) literal(outer int) *node {
	start := s.pos
	end := s.lineEnd(start)
	for end < s.end && !s.leaves(end+1, s.end, outer) {
		end = s.lineEnd(end + 1)
	}
	n := s.leaf(Range{start, s.trimmed(start, end)}, literal)
	// The mark can be on an otherwise empty line, or on the spaces before the end.
	if s.mark >= start && s.mark <= end && s.found == nil {
		s.found = n
	}
	s.to(end)
	return n
}
