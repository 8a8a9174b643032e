package assist

import "strings"

// flow scans a list in brackets or a map in braces. It includes following lines to the right of
// column outer, and ends with them if there is no closing bracket.
func (s *scanner) flow(outer int) *node {
	k, closer := sequence, byte(']')
	if s.text[s.pos] == '{' {
		k, closer = mapping, '}'
	}
	n := &node{kind: k, flow: true, span: Range{s.pos, s.pos + 1}}
	s.name(n)
	s.pos++
	s.depth++
	defer func() { s.depth-- }()
	for s.flowSkip(outer) {
		n.span.End = s.pos + 1
		switch s.text[s.pos] {
		case closer:
			s.pos++
			return n
		case ',':
			s.pos++
		case ']', '}':
			return n // it closes an outer list or map
		default:
			s.member(n, outer)
			n.span.End = max(n.span.End, s.pos)
		}
	}
	n.span.End = max(n.span.Start+1, s.trimmed(n.span.Start, s.pos))
	return n
}

// flowSkip moves to the next character and reports whether it can be part of the bracketed list
// or map.
func (s *scanner) flowSkip(outer int) bool {
	for s.pos < s.end {
		switch c := s.text[s.pos]; {
		case c == ' ' || c == '\t' || c == '\r':
			s.pos++
		case c == '#' && s.commentAt(s.pos):
			s.pos = s.lineEnd(s.pos)
		case c == '\n':
			if s.leaves(s.pos+1, s.end, outer) && !s.closes(s.pos+1) {
				return false
			}
			s.pos++
			s.line = s.pos
		default:
			return true
		}
	}
	return false
}

// closes reports whether the line at an offset starts with a closing bracket, which can be in
// any column.
func (s *scanner) closes(at int) bool {
	for at < s.end && (s.text[at] == ' ' || s.text[at] == '\t') {
		at++
	}
	return at < s.end && (s.text[at] == ']' || s.text[at] == '}')
}

// member scans an item of a list or a pair of a map.
func (s *scanner) member(n *node, outer int) {
	start := s.pos
	value := s.flowValue(outer)
	colon := s.flowColon()
	if colon < 0 {
		if n.kind == mapping {
			n.add(&pair{key: value, colon: -1})
		} else {
			n.addItem(&item{dash: start, value: value})
		}
		return
	}
	s.pos = colon + 1
	p := &pair{key: value, colon: colon}
	if s.flowSkip(outer) && strings.IndexByte(",]}", s.text[s.pos]) < 0 {
		p.value = s.flowValue(outer)
	}
	if n.kind == mapping {
		n.add(p)
		return
	}
	one := &node{kind: mapping, flow: true, span: Range{start, s.pos}} // [a: b]
	one.add(p)
	n.addItem(&item{dash: start, value: one})
}

// flowColon returns the offset of the colon after a key, or -1.
func (s *scanner) flowColon() int {
	i := s.pos
	for i < s.end && s.text[i] == ' ' {
		i++
	}
	if i < s.end && s.text[i] == ':' && (s.breaksAfter(i+1) || strings.IndexByte(",]}[{\"'", s.text[i+1]) >= 0 || s.afterQuote()) {
		return i
	}
	return -1
}

func (s *scanner) afterQuote() bool { return s.text[s.pos-1] == '"' || s.text[s.pos-1] == '\'' }

// flowValue scans the text between commas. It advances by at least one byte.
func (s *scanner) flowValue(outer int) *node {
	s.anchor = ""
	s.properties()
	if s.pos >= s.end {
		return s.leaf(Range{s.end, s.end}, plain)
	}
	var n *node
	switch c := s.text[s.pos]; {
	case (c == '[' || c == '{') && s.depth < maxDepth:
		return s.flow(outer)
	case c == '"' || c == '\'':
		end, ok := s.closing(s.pos, min(s.end, s.pos+maxAhead), outer)
		if !ok {
			end = s.unclosed(s.pos + 1)
		}
		n = s.leaf(Range{s.pos, end}, quoteStyle(c))
	default:
		n = s.leaf(Range{s.pos, max(s.pos+1, s.flowPlainEnd())}, plain)
		if c == '*' {
			n.kind = alias
		}
	}
	s.name(n)
	s.to(n.span.End)
	return n
}

// unclosed returns the assumed end of a quoted text without a closing quote.
func (s *scanner) unclosed(from int) int {
	end := s.lineEnd(from)
	if i := strings.IndexAny(s.text[from:end], ",]}"); i >= 0 {
		end = from + i
	}
	return s.trimmed(from-1, end)
}

func (s *scanner) flowPlainEnd() int {
	end := s.lineEnd(s.pos)
	for i := s.pos; i < end; i++ {
		switch c := s.text[i]; {
		case strings.IndexByte(",[]{}", c) >= 0 && i > s.pos:
			return s.trimmed(s.pos, i)
		case c == ':' && (s.breaksAfter(i+1) || strings.IndexByte(",]}", s.text[i+1]) >= 0):
			return s.trimmed(s.pos, i)
		case c == '#' && i > s.pos && (s.text[i-1] == ' ' || s.text[i-1] == '\t'):
			return s.trimmed(s.pos, i)
		}
	}
	return s.trimmed(s.pos, end)
}
