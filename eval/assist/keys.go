package assist

import (
	"fmt"
	"slices"
	"strings"

	"waza/eval"
	"waza/eval/decode"
)

// candidate is a key that may stand in a map.
type candidate struct {
	name     string
	views    []view
	required bool
}

// keys proposes the keys that a map may have and does not have yet. The map is nil
// while its first key is written.
func (c *completer) keys(m *node, shapes []view) {
	list := c.candidates(m, shapes)
	slices.SortStableFunc(list, requiredFirst)
	colon := c.node.isKey() && c.node.pair.colon >= 0
	for _, k := range list {
		it := Item{Label: k.name, Sort: Key, Detail: typeWords(k.views), Doc: c.document(k.views)}
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

func (c *completer) candidates(m *node, shapes []view) []candidate {
	have := c.written(m)
	nested := c.nested(m, shapes, have)
	var out []candidate
	at := map[string]int{}
	for _, shape := range shapes {
		for _, p := range shape.Properties {
			if p.schema.Deprecated || have[p.name] || nested[p.name] {
				continue
			}
			k := candidate{name: p.name, views: c.guide.expand(c.tree, p.schema, nil), required: slices.Contains(shape.required, p.name)}
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

// written are the keys that a map has already, by their name and by that of the
// older one that means the same.
func (c *completer) written(m *node) map[string]bool {
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

// nested are the keys that belong into a map that stands beside: options of a
// grader that has a config, inputs of a task that has inputs.
func (c *completer) nested(m *node, shapes []view, have map[string]bool) map[string]bool {
	out := map[string]bool{}
	for key := range have {
		for _, v := range c.guide.property(c.tree, shapes, key, nil) {
			if v.isObject() && c.tree.value(m, key) != nil {
				for _, p := range v.Properties {
					out[p.name] = true
				}
			}
		}
	}
	return out
}

// isConfig reports whether a map is the config of the suite, or its first key is
// being written.
func (c *completer) isConfig(m *node) bool {
	if m == nil {
		m = c.node
	}
	return c.isSuite() && m.parent != nil && m.parent == c.tree.root && m.pair != nil && m.pair.key != nil && m.pair.key.text() == "config"
}

// ofExecutor sorts the options of executors out: those of the one that the suite
// uses stay, those of others do nothing. Where it names none, all stay.
func (c *completer) ofExecutor(config *node, list []candidate) []candidate {
	v := c.o.Vocabulary
	if v == nil {
		return list
	}
	name, _ := c.executor(config)
	used, known := v.Executor(name)
	common := decode.Keys(eval.Config{})
	return slices.DeleteFunc(list, func(k candidate) bool {
		return known && !slices.Contains(common, k.name) && !takes(used, k.name) && c.takenByAny(k.name)
	})
}

func takes(k eval.Kind, key string) bool {
	return k.Options != nil && slices.Contains(decode.Keys(k.Options()), key)
}

func (c *completer) takenByAny(key string) bool {
	return slices.ContainsFunc(c.o.Vocabulary.Executors, func(k eval.Kind) bool { return takes(k, key) })
}

// executor is the one that a config names, by whichever spelling.
func (q *query) executor(config *node) (string, bool) {
	for _, key := range []string{"executor", "engine"} {
		if v := q.tree.value(config, key); v != nil && v.text() != "" {
			return v.text(), true
		}
	}
	return "", false
}

// entry is what a key is inserted as: with its colon, and with as much of its
// value as is always the same.
func (c *completer) entry(k candidate) (insert string, snippet bool) {
	inFlow := c.node.parent != nil && c.node.parent.flow
	switch shape := c.shape(k.views); {
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

// shape is the shape in which a value is begun: as a list if it may be one, as a
// map if it must be.
func (c *completer) shape(views []view) *view {
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

// firstKey is the key that the items of a list must have, if they are maps.
func (c *completer) firstKey(list view) string {
	items := c.guide.expand(c.tree, list.Items, nil)
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

// choices are the values of a snippet, escaped; none when more than a few are
// allowed, or others are, too, or each wants to be explained.
func (c *completer) choices(views []view) []string {
	const most = 12
	var out []string
	for _, v := range views {
		if kinds, _ := c.kinds(v); kinds != nil {
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

// allowed are the values that a shape is limited to.
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
