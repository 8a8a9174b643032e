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

// A scanner makes the nodes of a text, in block style; a [flow] makes those in brackets.
type scanner struct {
	cursor
	found   *node // contains the mark
	depth   int
	anchors map[string]*node
	anchor  string // of the next node
	step    int    // the first indentation in the text
}

// noMark is the offset of the mark in a text without one.
const noMark = -1

// scan returns the tree of a text with a mark at an offset, or [noMark], and the node that contains
// the mark; nil if the mark is in a comment.
func scan(text string, offset int) (*tree, *node) {
	if offset != noMark {
		text = text[:offset] + mark + text[offset:]
	}
	start := len(text) - len(strings.TrimPrefix(text, "\uFEFF"))
	s := &scanner{
		cursor:  cursor{text: text, pos: start, line: start, end: len(text), mark: offset, known: Range{-1, -1}},
		anchors: map[string]*node{},
	}
	return s.tree(), s.found
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
