package assist

import (
	"strings"

	"gopkg.in/yaml.v3"
)

// Range is a part of a text: byte offsets, the end exclusive.
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
	literal // and folded
)

// node is a piece of YAML as far as it could be made out.
type node struct {
	kind   kind
	style  style
	span   Range  // quotes and brackets included
	raw    string // what stands there
	column int    // of the keys of a block map, or the dashes of a block list
	flow   bool   // written in brackets or braces

	pairs []*pair // of a map
	items []*item // of a list

	parent *node
	pair   *pair // of parent, when that is a map
	item   *item // of parent, when that is a list
}

// pair is a key with its value. While one is typed either may be missing: a nil
// key stands for lines that belong to no key.
type pair struct {
	key   *node
	colon int // where the colon is; -1 when there is none
	value *node
}

// item is one of a list. A nil value is one that nothing is written of.
type item struct {
	dash  int // where the dash, or in brackets the item, begins; -1 when it is missing
	value *node
}

// text is the value of a scalar, without quotes; "" of anything else.
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

// unquoted is the text of a quoted scalar, if that stands there as it is. Most do,
// and the parser takes long.
func (n *node) unquoted() (text string, ok bool) {
	last := len(n.raw) - 1
	if !n.isQuoted() || last < 1 || n.raw[0] != n.raw[last] {
		return "", false
	}
	text = n.raw[1:last]
	return text, !strings.ContainsAny(text, "\\\n\"'")
}

func (n *node) isQuoted() bool { return n.style == singleQuoted || n.style == doubleQuoted }

// inner is where the text of a scalar stands, without its quotes.
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

// get returns the value of a key of a map; nil when it has none.
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

// values are the items of a list that something is written of.
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

// extent is where a node and all that belongs to it stands.
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

// at returns the innermost scalar or alias that holds an offset; nil when there
// is none.
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

// tree is a text and what could be made out of it.
type tree struct {
	text    string
	root    *node // nil when the text holds nothing
	anchors map[string]*node
	step    int // by how much the text indents
}

// follow returns what an alias stands for, and any other node itself.
func (t *tree) follow(n *node) *node {
	for hops := 0; n != nil && n.kind == alias && hops < 8; hops++ {
		n = t.anchors[strings.TrimPrefix(n.raw, "*")]
	}
	return n
}

// value returns the value of a key of a map, those that are merged into it by
// "<<" included; nil when it has none.
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
