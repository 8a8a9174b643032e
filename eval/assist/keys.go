package assist

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"waza/eval"
	"waza/eval/decode"
)

// A candidate is a key that is allowed in a map.
type candidate struct {
	name     string
	views    []view
	required bool
}

// keyProposals propose the keys of a map.
type keyProposals struct {
	*query
	*proposals
	snippets bool
}

// propose proposes the keys that are allowed in a map and missing from it. The map is nil while its
// first key is being typed.
func (c keyProposals) propose(m *node, shapes []view) {
	list := c.candidates(m, shapes)
	slices.SortStableFunc(list, requiredFirst)
	colon := c.node.isKey() && c.node.pair.colon >= 0
	for _, k := range list {
		it := Item{Label: k.name, Sort: Key, Detail: typeWords(k.views), Doc: c.words.key(k.views)}
		if k.required {
			it.Detail += ", required"
		}
		if !colon {
			it.Insert, it.Snippet = c.entry(k)
		}
		c.add(it)
	}
}

func requiredFirst(a, b candidate) int {
	switch {
	case a.required == b.required:
		return 0
	case a.required:
		return -1
	}
	return 1
}

func (c keyProposals) candidates(m *node, shapes []view) []candidate {
	have := c.written(m)
	nested := c.nested(m, shapes, have)
	var out []candidate
	at := map[string]int{}
	for _, shape := range shapes {
		for _, p := range shape.Properties {
			if p.schema.Deprecated || have[p.name] || nested[p.name] {
				continue
			}
			k := candidate{name: p.name, views: c.tree.expand(p.schema, nil), required: slices.Contains(shape.required, p.name)}
			if i, twice := at[p.name]; twice {
				out[i].views = append(out[i].views, k.views...)
				continue
			}
			at[p.name] = len(out)
			out = append(out, k)
		}
	}
	if c.isConfig(m) {
		out = c.ofExecutor(m, out)
	}
	return out
}

// written returns the existing keys of a map as written, except the one that is being typed.
func (c keyProposals) written(m *node) map[string]bool {
	have := map[string]bool{}
	if m == nil {
		return have
	}
	for _, p := range m.pairs {
		if p.key != nil && p.key != c.node && p.colon >= 0 {
			have[p.key.text()] = true
		}
	}
	return have
}

// nested returns the keys that belong into a map beside them: options of a grader that has a
// config, inputs of a task that has inputs.
func (c keyProposals) nested(m *node, shapes []view, have map[string]bool) map[string]bool {
	out := map[string]bool{}
	for key := range have {
		for _, v := range c.tree.property(shapes, key, nil) {
			if v.isObject() && c.tree.value(m, key) != nil {
				for _, p := range v.Properties {
					out[p.name] = true
				}
			}
		}
	}
	return out
}

// isConfig reports whether a map is the config of the suite, or whether its first key is being
// typed.
func (c keyProposals) isConfig(m *node) bool {
	if m == nil {
		m = c.node
	}
	return c.isSuite && m.parent != nil && m.parent == c.tree.root && m.pair != nil && m.pair.key != nil && m.pair.key.text() == "config"
}

// ofExecutor removes the options of executors that the suite does not use, because they have no
// effect. If the suite names no executor, all options stay.
func (c keyProposals) ofExecutor(config *node, list []candidate) []candidate {
	v := c.words.vocabulary
	if v == nil {
		return list
	}
	name := cmp.Or(c.tree.value(config, "executor").text(), c.tree.value(config, "engine").text())
	used, known := v.Executor(name)
	common := decode.Keys(eval.Config{})
	return slices.DeleteFunc(list, func(k candidate) bool {
		return known && !slices.Contains(common, k.name) && !takes(used, k.name) && c.takenByAny(k.name)
	})
}

func takes(k eval.Kind, key string) bool {
	return k.Options != nil && slices.Contains(decode.Keys(k.Options()), key)
}

func (c keyProposals) takenByAny(key string) bool {
	return slices.ContainsFunc(c.words.vocabulary.Executors, func(k eval.Kind) bool { return takes(k, key) })
}

// entry returns the text to insert for a key: the key with its colon, and the part of its value
// that is always the same.
func (c keyProposals) entry(k candidate) (insert string, snippet bool) {
	inFlow := c.node.parent != nil && c.node.parent.flow
	switch shape := shapeOf(k.views); {
	case inFlow || shape == nil:
		return k.name + ": ", false
	case shape.isList():
		return k.name + ":\n" + c.indent() + "- " + c.firstKey(*shape), false
	case shape.isObject():
		return k.name + ":\n" + c.indent(), false
	}
	if choice := c.choices(k.views); c.snippets && len(choice) > 0 {
		return k.name + ": ${1|" + strings.Join(choice, ",") + "|}", true
	}
	return k.name + ": ", false
}

// shapeOf returns the shape for a new value: a list if that is allowed, a map if that is required.
func shapeOf(views []view) *view {
	var object, list, one *view
	for i := range views {
		switch v := &views[i]; {
		case v.isList() && list == nil:
			list = v
		case v.isScalar() && one == nil:
			one = v
		case v.isObject() && object == nil:
			object = v
		}
	}
	switch {
	case list != nil && (one == nil || one.refers == toTaskFiles):
		return list
	case one != nil:
		return one
	}
	return object
}

// firstKey returns the required key of the items of a list, if they are maps.
func (c keyProposals) firstKey(list view) string {
	items := c.tree.expand(list.Items, nil)
	for _, v := range items {
		if v.isScalar() || len(v.Properties) == 0 {
			return ""
		}
	}
	for _, v := range items {
		if len(v.required) > 0 {
			return v.required[0] + ": "
		}
	}
	return ""
}

// choices returns the values for a snippet, escaped. It returns none if there are many, if other
// values are allowed, or if each has its own explanation.
func (c keyProposals) choices(views []view) []string {
	const most = 12
	var out []string
	for _, v := range views {
		if kinds, _ := c.words.kinds(v); kinds != nil {
			return nil
		}
		for _, e := range v.allowed() {
			out = append(out, escapeChoice.Replace(e))
		}
		if len(v.allowed()) == 0 {
			return nil
		}
	}
	if len(out) > most {
		return nil
	}
	return out
}

var escapeChoice = strings.NewReplacer(`\`, `\\`, `|`, `\|`, `,`, `\,`, `$`, `\$`, `}`, `\}`)

// allowed returns the only allowed values of a shape.
func (v view) allowed() []string {
	if len(v.Enum) == 0 && v.Type.has("boolean") && !v.Type.has("string") {
		return []string{"true", "false"}
	}
	out := make([]string, len(v.Enum))
	for i, e := range v.Enum {
		out[i] = fmt.Sprint(e)
	}
	return out
}

// indent returns the white space of a line one level below the replaced text.
func (c keyProposals) indent() string { return strings.Repeat(" ", c.column()+c.tree.step) }
