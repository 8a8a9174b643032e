package assist

import "strings"

// The scanner reads a text by lines and indentation, like a person, and not by the rules of
// YAML. While somebody types, the text is usually broken, and a parser that stops at the first
// fault would not help. For a well-formed text, the scanner makes the same tree as the parser.
// Otherwise it keeps what it recognizes:
//
//	graders:
//	  - type: text
//	    con|              a key without a colon is a pair without a value
//	  |                   a line without its dash is an item without a dash
//	    "contains         an unclosed quote ends with its line
//
// Every step advances by at least one byte or returns, and lookahead is bounded, so the time is
// roughly linear in the length of the text.

// maxDepth limits nesting, like in package decode.
const maxDepth = 100

// mark is inserted into the text at the cursor, so that the scanner always finds a node there.
// It is a character without meaning (private use).
const mark = "\uE000"

type scanner struct {
	text    string
	pos     int
	line    int // offset of the line of pos
	end     int // end of the document
	mark    int // offset of the mark; -1 without a mark
	found   *node
	depth   int
	anchors map[string]*node
	anchor  string // of the next node
	step    int    // the first indentation in the text
	// known is a part of a line up to its end. It avoids repeated searches for the end of long
	// lines.
	known Range
}

// scan returns the tree of a text.
func scan(text string) *tree { return scanMarked(text, -1).tree() }

// scanAt returns the tree of a text with a mark at an offset, and the node that contains the
// mark; nil if the mark is in a comment.
func scanAt(text string, offset int) (*tree, *node) {
	s := scanMarked(text[:offset]+mark+text[offset:], offset)
	return s.tree(), s.found
}

func scanMarked(text string, at int) *scanner {
	s := &scanner{text: text, end: len(text), mark: at, known: Range{-1, -1}, anchors: map[string]*node{}}
	s.pos = len(text) - len(strings.TrimPrefix(text, "\uFEFF"))
	s.line = s.pos
	return s
}

func (s *scanner) tree() *tree {
	root := s.document()
	if s.step == 0 {
		s.step = 2
	}
	return &tree{text: s.text, root: root, anchors: s.anchors, step: s.step}
}

// document scans the first document. It adds the pairs of further top-level maps to the first
// one, such as lines to the left of the first line.
func (s *scanner) document() *node {
	var root *node
	for {
		before := s.pos
		n := s.block(0, -1)
		switch {
		case root == nil:
			root = n
		case n != nil && root.kind == mapping && n.kind == mapping:
			for _, p := range n.pairs {
				root.add(p)
			}
		}
		if s.skip() {
			return root
		}
		if s.pos == before {
			s.nextLine()
		}
	}
}

func (n *node) add(p *pair) {
	n.pairs = append(n.pairs, p)
	for _, c := range []*node{p.key, p.value} {
		if c != nil {
			c.parent, c.pair = n, p
		}
	}
}

func (n *node) addItem(it *item) {
	n.items = append(n.items, it)
	if it.value != nil {
		it.value.parent, it.value.item = n, it
	}
}

// skip advances to the next character that is not a space, comment or document marker. It
// reports whether the text has ended.
func (s *scanner) skip() (ended bool) {
	for s.pos < s.end {
		switch c := s.text[s.pos]; {
		case c == ' ' || c == '\t' || c == '\r':
			s.pos++
		case c == '\n':
			s.pos++
			s.line = s.pos
		case c == '#' && s.commentAt(s.pos):
			s.nextLine()
		case s.pos == s.line && s.marker("..."):
			s.end = s.pos
		case s.pos == s.line && s.marker("---"):
			if strings.TrimLeft(s.text[:s.pos], "\uFEFF \t\r\n") != "" && !s.onlyComments() {
				s.end = s.pos
				return true
			}
			s.pos += 3
		case c == '%' && s.pos == s.line:
			s.nextLine()
		default:
			return false
		}
	}
	return true
}

// onlyComments reports whether only comments and directives precede the position.
func (s *scanner) onlyComments() bool {
	for line := range strings.Lines(s.text[:s.pos]) {
		if t := strings.TrimSpace(strings.TrimPrefix(line, "\uFEFF")); t != "" && t[0] != '#' && t[0] != '%' {
			return false
		}
	}
	return true
}

func (s *scanner) marker(m string) bool {
	rest := s.text[s.pos:s.end]
	return strings.HasPrefix(rest, m) && (len(rest) == 3 || strings.ContainsRune(" \t\r\n", rune(rest[3])))
}

func (s *scanner) commentAt(i int) bool {
	return s.text[i] == '#' && (i == s.line || strings.IndexByte(" \t", s.text[i-1]) >= 0)
}

func (s *scanner) nextLine() {
	s.pos = s.lineEnd(s.pos)
	if s.pos < s.end {
		s.pos++
		s.line = s.pos
	}
}

// lineEnd returns the offset of the end of the line of i, without "\n".
func (s *scanner) lineEnd(i int) int {
	if s.known.Start <= i && i <= s.known.End && s.known.End <= s.end {
		return s.known.End
	}
	s.known = Range{i, s.end}
	if n := strings.IndexByte(s.text[i:s.end], '\n'); n >= 0 {
		s.known.End = i + n
	}
	return s.known.End
}

func (s *scanner) column() int { return s.pos - s.line }

// spaces skips spaces and reports whether this line has more text.
func (s *scanner) spaces() bool {
	for s.pos < s.end && (s.text[s.pos] == ' ' || s.text[s.pos] == '\t' || s.text[s.pos] == '\r') {
		s.pos++
	}
	return s.pos < s.end && s.text[s.pos] != '\n' && !s.commentAt(s.pos)
}

// breaksAfter reports whether the character at i ends a word like a space does, after a dash or
// a colon.
func (s *scanner) breaksAfter(i int) bool {
	return i >= s.end || i == s.mark || strings.IndexByte(" \t\r\n", s.text[i]) >= 0
}

func (s *scanner) dash() bool {
	return s.pos < s.end && s.text[s.pos] == '-' && s.breaksAfter(s.pos+1)
}

// startNode makes a map or list that starts at the position.
func (s *scanner) startNode(k kind, column int) *node {
	n := &node{kind: k, column: column, span: Range{s.pos, s.pos}}
	s.name(n)
	return n
}

// name registers a node under its anchor.
func (s *scanner) name(n *node) {
	if s.anchor != "" {
		s.anchors[s.anchor] = n
		s.anchor = ""
	}
}

// properties skips tags and an anchor. [scanner.name] gives the anchor to the next node.
func (s *scanner) properties() {
	for s.spaces() && (s.text[s.pos] == '!' || s.text[s.pos] == '&') {
		end := s.pos + 1
		for !s.breaksAfter(end) {
			end++
		}
		if s.text[s.pos] == '&' {
			s.anchor = s.text[s.pos+1 : end]
		}
		if end == s.pos+1 {
			return
		}
		s.pos = end
	}
}
