package assist

import (
	"slices"
	"strings"

	"waza/eval"
)

// A variable is a template variable with its meaning.
type variable struct{ name, meaning string }

// known returns the template variables that a text of the document can use.
func (q *query) known(n *node) []variable {
	var out []variable
	add := func(meaning string, names ...string) {
		for _, name := range names {
			if !slices.ContainsFunc(out, func(v variable) bool { return v.name == name }) {
				out = append(out, variable{name, meaning})
			}
		}
	}
	add("input of the suite", q.suite.setting("inputs").keyNames()...)
	add("parameter of config.matrix", q.suite.setting("config", "matrix").keyNames()...)
	add("column of the dataset", q.suite.columns()...)
	for ; n != nil; n = n.parent {
		for _, key := range q.tree.value(n, "context").keyNames() {
			add("value of the task's context", "context."+key)
		}
		for _, key := range q.tree.value(q.tree.value(n, "inputs"), "context").keyNames() {
			add("value of the task's context", "context."+key)
		}
	}
	add("built-in variable", eval.BuiltinVariables()...)
	return out
}

func (n *node) keyNames() []string {
	if n == nil || n.kind != mapping {
		return nil
	}
	var out []string
	for _, p := range n.pairs {
		if p.key != nil && p.colon >= 0 {
			out = append(out, p.key.text())
		}
	}
	return out
}

// braces finds the double braces around an offset, and returns the range of the name in them.
func braces(text string, offset int) (r Range, ok bool) {
	line := 1 + strings.LastIndexByte(text[:offset], '\n')
	open := strings.LastIndex(text[line:offset], "{{")
	if open < 0 || strings.Contains(text[line+open:offset], "}}") {
		return r, false
	}
	start := line + open + 2
	for start < offset && (text[start] == ' ' || text[start] == '.') {
		start++
	}
	end := offset
	for end < len(text) && (text[end] == '_' || text[end] == '-' || text[end] == '.' || text[end] >= 0x80 ||
		'0' <= text[end] && text[end] <= '9' || 'a' <= text[end]|0x20 && text[end]|0x20 <= 'z') {
		end++
	}
	return Range{start, end}, true
}
