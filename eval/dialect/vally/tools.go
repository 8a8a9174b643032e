package vally

import (
	"regexp"

	"gopkg.in/yaml.v3"

	"waza/eval/dialect"
	"waza/eval/pattern"
	"waza/eval/text"
)

// toolCalls compares the calls of tools with rules.
func (c *check) toolCalls() {
	c.kind = "tool_constraint"
	for _, list := range [][2]string{{"required", "expect_tools"}, {"disallowed", "reject_tools"}} {
		from, to := list[0], list[1]
		n := c.option(from)
		if n != nil && n.Kind != yaml.SequenceNode {
			c.cannot(n, "needs a list of rules as %s, got %s", from, describe(n))
		}
		rules := dialect.List(n)
		for _, item := range dialect.Items(n) {
			rules.Content = append(rules.Content, c.toolRule(item))
		}
		setList(c.config, to, rules)
	}
	sequence := c.sequence()
	if c.config.Len() == 0 && sequence == nil {
		c.cannot(c.node, "needs required, disallowed or sequence")
	}
	if c.flag("ordered", false) {
		c.config.Set("ordered", dialect.Scalar(c.option("ordered"), true))
	}
	c.config.Set("syntax", dialect.Scalar(c.node, "javascript"))
	if sequence == nil {
		return
	}
	if c.config.Get("expect_tools") == nil && c.config.Get("reject_tools") == nil {
		c.config = *sequence
		return
	}
	calls := named(c.node, c.unique(c.name()+", calls"), c.kind, c.config)
	ordered := named(c.node, c.unique(c.name()+", sequence"), c.kind, *sequence)
	c.kind, c.config = groupKind, dialect.NewMap(c.node)
	c.config.Set("graders", dialect.List(c.node, calls, ordered))
}

// sequence returns the options of a grader that requires calls in an order, with other calls between them; nil
// without the option sequence.
func (c *check) sequence() *dialect.Map {
	n := c.option("sequence")
	if n == nil {
		return nil
	}
	switch {
	case n.Kind != yaml.SequenceNode:
		c.cannot(n, "needs a list of rules as sequence, got %s", describe(n))
	case len(n.Content) == 0:
		c.cannot(n, "needs at least one rule in sequence, got an empty list")
	}
	rules := dialect.List(n)
	for _, item := range dialect.Items(n) {
		rules.Content = append(rules.Content, c.toolRule(item))
	}
	config := dialect.NewMap(n)
	setList(config, "expect_tools", rules)
	config.Set("ordered", dialect.Scalar(n, true))
	config.Set("syntax", dialect.Scalar(n, "javascript"))
	return &config
}

// toolRule returns one rule, all of whose parts must match the same call.
func (c *check) toolRule(n *yaml.Node) *yaml.Node {
	rule := dialect.NewMap(n)
	if name := dialect.TextOf(n); name != "" {
		if regexp.QuoteMeta(name) == name {
			name = "^" + name + "$" // a plain name
		}
		rule.Set("tool", c.expression(n, name))
		return rule.Node
	}
	for _, p := range dialect.Pairs(n) {
		switch key := p.Key.Value; key {
		case "name":
			rule.Set("tool", c.expression(p.Value, dialect.TextOf(p.Value)))
		case "command":
			rule.Set("command_pattern", c.expression(p.Value, dialect.TextOf(p.Value)))
		case "path":
			rule.Set("path_pattern", c.expression(p.Value, dialect.TextOf(p.Value)))
		case "result":
			rule.Set("result_pattern", c.expression(p.Value, dialect.TextOf(p.Value)))
		case "pattern":
			rule.Set("args_pattern", c.expression(p.Value, dialect.TextOf(p.Value)))
		case "args":
			args := dialect.NewMap(p.Value)
			if len(dialect.Pairs(p.Value)) == 0 {
				c.cannot(p.Key, "needs a map of patterns as args, got %s", describe(p.Value))
			}
			for _, arg := range dialect.Pairs(p.Value) {
				matcher := dialect.NewMap(arg.Value)
				matcher.Set("regex", c.expression(arg.Value, dialect.TextOf(arg.Value)))
				args.Set(arg.Key.Value, matcher.Node)
			}
			rule.Set("args", args.Node)
		default:
			c.cannot(p.Key, "has a rule with an unknown key %q", text.Clip(key, 60))
		}
	}
	if rule.Len() == 0 {
		c.cannot(n, "needs rules that are names, or maps with name, command, path, args, pattern or result, got %s", describe(n))
	}
	return rule.Node
}

// expression returns a regular expression of JavaScript.
func (c *check) expression(at *yaml.Node, value string) *yaml.Node {
	if value == "" {
		c.cannot(at, "needs a pattern, got %s", describe(at))
	} else if _, err := pattern.Compile(pattern.JavaScript, value); err != nil {
		c.cannot(at, "has an invalid pattern: %v", err)
	}
	return dialect.Scalar(at, value)
}
