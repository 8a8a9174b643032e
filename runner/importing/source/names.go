package source

import (
	"fmt"

	"waza/eval/text"
)

// Names gives tasks ids that are unique. The zero value is empty.
type Names struct {
	byKey map[string]string
	taken map[string]bool
	next  map[string]int // the next number to try, by the wanted name
}

// Of returns the id for a key: the wanted one or, if another key has it, one with a number.
func (n *Names) Of(key, wanted string) string {
	if id, ok := n.byKey[key]; ok {
		return id
	}
	if n.byKey == nil {
		n.byKey, n.taken, n.next = map[string]string{}, map[string]bool{}, map[string]int{}
	}
	id := wanted
	for n.taken[id] {
		n.next[wanted] = max(n.next[wanted], 1) + 1
		id = fmt.Sprintf("%s-%d", wanted, n.next[wanted])
	}
	n.byKey[key], n.taken[id] = id, true
	return id
}

// A Varying is a part of the origin of trials, such as the model. Ids of tasks contain it only if a
// file has several.
type Varying struct {
	first   string
	seen    bool
	several bool
}

// Add adds a value.
func (v *Varying) Add(value string) {
	v.several = v.several || v.seen && value != v.first
	if !v.seen {
		v.first, v.seen = value, true
	}
}

// Only returns the value if it is the only one, else nothing.
func (v *Varying) Only() string {
	if v.several {
		return ""
	}
	return v.first
}

// Suffix returns the end of ids for a value: empty, or " [value]" if the file has several.
func (v *Varying) Suffix(value string) string {
	if !v.several {
		return ""
	}
	return " [" + text.Clip(value, 200) + "]"
}
