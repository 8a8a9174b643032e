package assist

import "strings"

// A flow scans a text in brackets or braces. It includes following lines to the right of column
// outer, and ends with them if there is no closing bracket.
type flow struct {
	*scanner
	outer int
}

func (f flow) collection() *node {
	k, closer := sequence, byte(']')
	if f.text[f.pos] == '{' {
		k, closer = mapping, '}'
	}
	n := &node{kind: k, flow: true, span: Range{f.pos, f.pos + 1}}
	f.name(n)
	f.pos++
	f.depth++
	defer func() { f.depth-- }()
	for f.next() {
		n.span.End = f.pos + 1
		switch f.text[f.pos] {
		case closer:
			f.pos++
			return n
		case ',':
			f.pos++
		case ']', '}':
			return n // it closes an outer list or map
		default:
			f.member(n)
			n.span.End = max(n.span.End, f.pos)
		}
	}
	n.span.End = max(n.span.Start+1, f.trimmed(n.span.Start, f.pos))
	return n
}

// next moves to the next character and reports whether it can be part of the bracketed list
// or map.
func (f flow) next() bool {
	for f.pos < f.end {
		switch c := f.text[f.pos]; {
		case c == ' ' || c == '\t' || c == '\r':
			f.pos++
		case c == '#' && f.commentAt(f.pos):
			f.pos = f.lineEnd(f.pos)
		case c == '\n':
			if f.leaves(f.pos+1, f.end, f.outer) && !f.closes(f.pos+1) {
				return false
			}
			f.pos++
			f.line = f.pos
		default:
			return true
		}
	}
	return false
}

// closes reports whether the line at an offset starts with a closing bracket, which can be in
// any column.
func (f flow) closes(at int) bool {
	for at < f.end && (f.text[at] == ' ' || f.text[at] == '\t') {
		at++
	}
	return at < f.end && (f.text[at] == ']' || f.text[at] == '}')
}

func (f flow) member(n *node) {
	start := f.pos
	value := f.part()
	colon := f.colonAfter()
	if colon < 0 {
		if n.kind == mapping {
			n.add(&pair{key: value, colon: -1})
		} else {
			n.addItem(&item{dash: start, value: value})
		}
		return
	}
	f.pos = colon + 1
	p := &pair{key: value, colon: colon}
	if f.next() && strings.IndexByte(",]}", f.text[f.pos]) < 0 {
		p.value = f.part()
	}
	if n.kind == mapping {
		n.add(p)
		return
	}
	one := &node{kind: mapping, flow: true, span: Range{start, f.pos}} // [a: b]
	one.add(p)
	n.addItem(&item{dash: start, value: one})
}

// colonAfter returns the offset of the colon after a key, or -1.
func (f flow) colonAfter() int {
	i := f.pos
	for i < f.end && f.text[i] == ' ' {
		i++
	}
	if i < f.end && f.text[i] == ':' && (f.breaksAfter(i+1) || strings.IndexByte(",]}[{\"'", f.text[i+1]) >= 0 || f.afterQuote()) {
		return i
	}
	return -1
}

func (f flow) afterQuote() bool { return f.text[f.pos-1] == '"' || f.text[f.pos-1] == '\'' }

// part scans the text between commas. It advances by at least one byte.
func (f flow) part() *node {
	f.anchor = ""
	f.properties()
	if f.pos >= f.end {
		return f.leaf(Range{f.end, f.end}, plain)
	}
	var n *node
	switch c := f.text[f.pos]; {
	case (c == '[' || c == '{') && f.depth < maxDepth:
		return f.collection()
	case c == '"' || c == '\'':
		end, ok := f.closing(f.pos, min(f.end, f.pos+maxAhead), f.outer)
		if !ok {
			end = f.unclosed(f.pos + 1)
		}
		n = f.leaf(Range{f.pos, end}, quoteStyle(c))
	default:
		n = f.leaf(Range{f.pos, max(f.pos+1, f.partEnd())}, plain)
		if c == '*' {
			n.kind = alias
		}
	}
	f.name(n)
	f.to(n.span.End)
	return n
}

// unclosed returns the assumed end of a quoted text without a closing quote.
func (f flow) unclosed(from int) int {
	end := f.lineEnd(from)
	if i := strings.IndexAny(f.text[from:end], ",]}"); i >= 0 {
		end = from + i
	}
	return f.trimmed(from-1, end)
}

func (f flow) partEnd() int {
	end := f.lineEnd(f.pos)
	for i := f.pos; i < end; i++ {
		switch c := f.text[i]; {
		case strings.IndexByte(",[]{}", c) >= 0 && i > f.pos:
			return f.trimmed(f.pos, i)
		case c == ':' && (f.breaksAfter(i+1) || strings.IndexByte(",]}", f.text[i+1]) >= 0):
			return f.trimmed(f.pos, i)
		case c == '#' && i > f.pos && (f.text[i-1] == ' ' || f.text[i-1] == '\t'):
			return f.trimmed(f.pos, i)
		}
	}
	return f.trimmed(f.pos, end)
}
