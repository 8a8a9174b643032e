package assist

import (
	"strings"

	"gopkg.in/yaml.v3"
)

// A Range is a part of a text: byte offsets, the end exclusive.
type Range struct{ Start, End int }

func (r Range) holds(offset int) bool { return r.Start <= offset && offset <= r.End }

type kind int

const (
	scalar kind = iota
	mapping
	sequence
	alias
)

type style int

const (
	plain style = iota
	singleQuoted
	doubleQuoted
	literal // includes folded
)

// A node is a recognized piece of YAML.
type node struct {
	kind   kind
	style  style
	span   Range  // includes quotes and brackets
	raw    string // the text as written
	column int    // of the keys of a block map, or the dashes of a block list
	flow   bool   // written in brackets or braces

	pairs []*pair // of a map
	items []*item // of a list

	parent *node
	pair   *pair // in parent, if that is a map
	item   *item // in parent, if that is a list
}

// A pair is a key with its value. Either can be missing while a pair is typed. Lines that belong
// to no key have a nil key.
type pair struct {
	key   *node
	colon int // offset of the colon; -1 without a colon
	value *node
}

// An item is an element of a list. Its value is nil if nothing is written.
type item struct {
	dash  int // start of the dash, or in brackets of the item; -1 if it is missing
	value *node
}

// text returns the value of a scalar, without quotes; "" for anything else.
func (n *node) text() string {
	switch {
	case n == nil || n.kind != scalar:
		return ""
	case n.style == plain && !strings.Contains(n.raw, "\n"):
		return n.raw
	}
	if inner, ok := n.unquoted(); ok {
		return inner
	}
	var s string
	if yaml.Unmarshal([]byte(n.raw), &s) != nil {
		return strings.Trim(n.raw, `"'`)
	}
	return s
}

// unquoted returns the text of a quoted scalar without escapes. Most have none, and the parser
// is slow.
func (n *node) unquoted() (text string, ok bool) {
	last := len(n.raw) - 1
	if !n.isQuoted() || last < 1 || n.raw[0] != n.raw[last] {
		return "", false
	}
	text = n.raw[1:last]
	return text, !strings.ContainsAny(text, "\\\n\"'")
}

func (n *node) isQuoted() bool { return n.style == singleQuoted || n.style == doubleQuoted }

func (n *node) inner() Range {
	r := n.span
	if n.isQuoted() {
		r.Start++
		if len(n.raw) > 1 && n.raw[len(n.raw)-1] == n.raw[0] {
			r.End--
		}
	}
	return r
}

// get returns the value of a key of a map; nil if it has none.
func (n *node) get(key string) *node {
	if p := n.find(key); p != nil {
		return p.value
	}
	return nil
}

func (n *node) find(key string) *pair {
	if n == nil || n.kind != mapping {
		return nil
	}
	for _, p := range n.pairs {
		if p.key != nil && p.colon >= 0 && p.key.text() == key {
			return p
		}
	}
	return nil
}

// values returns the items of a list that have a value.
func (n *node) values() []*node {
	if n == nil || n.kind != sequence {
		return nil
	}
	var out []*node
	for _, it := range n.items {
		if it.value != nil {
			out = append(out, it.value)
		}
	}
	return out
}

// isKey reports whether n is the key of a pair.
func (n *node) isKey() bool { return n.pair != nil && n.pair.key == n }

// extent returns the range of a node and everything below it.
func (n *node) extent() Range {
	r := n.span
	for _, p := range n.pairs {
		r = join(r, p.extent())
	}
	for _, it := range n.items {
		if it.value != nil {
			r = join(r, it.value.extent())
		}
	}
	return r
}

func (p *pair) extent() Range {
	var r Range
	switch {
	case p.key != nil:
		r = p.key.span
		r.End = max(r.End, p.colon+1)
	case p.value != nil:
		r = p.value.span
	}
	if p.value != nil {
		r = join(r, p.value.extent())
	}
	return r
}

func join(a, b Range) Range { return Range{min(a.Start, b.Start), max(a.End, b.End)} }

// at returns the innermost scalar or alias that contains an offset, or nil.
func (n *node) at(offset int) *node {
	if n == nil {
		return nil
	}
	if n.kind == scalar || n.kind == alias {
		if n.span.holds(offset) {
			return n
		}
		return nil
	}
	for _, p := range n.pairs {
		if p.key != nil && p.key.span.holds(offset) {
			return p.key
		}
		if found := p.value.at(offset); found != nil {
			return found
		}
	}
	for _, it := range n.items {
		if found := it.value.at(offset); found != nil {
			return found
		}
	}
	return nil
}

// A tree is a text and its recognized structure.
type tree struct {
	text    string
	root    *node // nil if nothing was recognized
	anchors map[string]*node
	step    int // the text's indentation
}

// follow returns the target of an alias, and any other node itself.
func (t *tree) follow(n *node) *node {
	for hops := 0; n != nil && n.kind == alias && hops < 8; hops++ {
		n = t.anchors[strings.TrimPrefix(n.raw, "*")]
	}
	return n
}

// value returns the value of a key of a map, including maps that are merged with "<<"; nil if it
// has none.
func (t *tree) value(n *node, key string) *node {
	if n = t.follow(n); n == nil {
		return nil
	}
	if p := n.find(key); p != nil {
		return t.follow(p.value)
	}
	if merged := t.follow(n.get("<<")); merged != nil && merged != n {
		return t.follow(merged.get(key))
	}
	return nil
}
