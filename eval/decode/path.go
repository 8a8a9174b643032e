package decode

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// A Path is a place in the options of a grader or executor: strings are keys, ints are indexes
// from 0.
type Path []any

// At returns a path of keys and indexes: At("regex_match", 2) is the third pattern of
// regex_match, At() all options together.
func At(elems ...any) Path { return elems }

// Walk follows path as far as it exists. It returns the last node and the number of path
// elements that it followed.
func Walk(n *yaml.Node, path Path) (*yaml.Node, int) {
	for depth, elem := range path {
		next := child(n, elem)
		if next == nil {
			return n, depth
		}
		n = next
	}
	return n, len(path)
}

func child(n *yaml.Node, elem any) *yaml.Node {
	n = Follow(n)
	switch e := elem.(type) {
	case string:
		return Lookup(n, e)
	case int:
		if n != nil && n.Kind == yaml.SequenceNode && e >= 0 && e < len(n.Content) {
			return n.Content[e]
		}
	}
	return nil
}

// Prefix returns "regex_match[2]: ", or "" for an empty path.
func (p Path) Prefix() string {
	if s := p.String(); s != "" {
		return s + ": "
	}
	return ""
}

// String returns the path in the form of messages: "regex_match[2]".
func (p Path) String() string {
	var b strings.Builder
	for _, elem := range p {
		switch e := elem.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", e)
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			fmt.Fprint(&b, e)
		}
	}
	return b.String()
}
