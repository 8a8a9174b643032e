package decode

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// Place changes the lines and columns of the nodes of the source to those of its text. The parser
// also ends a line at a \r without \n, and at U+0085, U+2028 and U+2029. Without such characters,
// nothing changes.
func (s *Source) Place(root *yaml.Node) {
	if !hasOtherBreaks(s.Text) {
		return
	}
	nodes := slices.SortedFunc(slices.Values(within(root, nil)), func(a, b *yaml.Node) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	parsed, actual := mark{1, 1}, mark{1, 1}
	rest := s.Text
	for _, n := range nodes {
		for rest != "" && (parsed.line < n.Line || parsed.line == n.Line && parsed.column < n.Column) {
			r, size := utf8.DecodeRuneInString(rest)
			rest = rest[size:]
			actual.pass(r == '\n')
			parsed.pass(r == '\n' || r == '\u0085' || r == '\u2028' || r == '\u2029' || r == '\r' && !strings.HasPrefix(rest, "\n"))
		}
		if n.Line > 0 {
			n.Line, n.Column = actual.line, actual.column
		}
	}
}

// hasOtherBreaks reports whether the parser ends lines elsewhere than at \n and \r\n. Each search for
// one text is much faster than one search for all characters, and most texts have none of them.
func hasOtherBreaks(text string) bool {
	return strings.Contains(text, "\u0085") || strings.Contains(text, "\u2028") || strings.Contains(text, "\u2029") ||
		strings.Count(text, "\r") != strings.Count(text, "\r\n")
}

// within adds a node and all nodes below it to a list.
func within(n *yaml.Node, list []*yaml.Node) []*yaml.Node {
	list = append(list, n)
	for _, c := range n.Content {
		list = within(c, list)
	}
	return list
}

// mark is a place in a text. Both numbers start at 1.
type mark struct{ line, column int }

// pass moves the mark past a character.
func (m *mark) pass(lineEnd bool) {
	if m.column++; lineEnd {
		m.line, m.column = m.line+1, 1
	}
}
