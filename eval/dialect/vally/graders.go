package vally

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/pattern"
	"waza/eval/text"
)

// check translates one grader. It fills in the type and the options of waza's grader.
type check struct {
	*stimulus
	node    *yaml.Node
	options *yaml.Node // config; nil if absent
	vally   string     // the type in Vally
	read    []string   // options that were translated
	kind    string     // the type in waza
	config  dialect.Map
	negate  bool
	turn    int // counted from 1; 0 for all turns
}

// kinds translate the graders of Vally by their types.
var kinds = map[string]func(*check){
	"output-matches":      func(c *check) { c.outputMatches(false) },
	"output-not-matches":  func(c *check) { c.outputMatches(true) },
	"output-contains":     func(c *check) { c.outputContains(false) },
	"output-not-contains": func(c *check) { c.outputContains(true) },
	"file-matches":        func(c *check) { c.fileMatches(false) },
	"file-not-matches":    func(c *check) { c.fileMatches(true) },
	"file-contains":       func(c *check) { c.fileContains(false) },
	"file-not-contains":   func(c *check) { c.fileContains(true) },
	"file-exists":         func(c *check) { c.fileExists("must_exist") },
	"file-not-exists":     func(c *check) { c.fileExists("must_not_exist") },
	"completed":           (*check).completed,
	"exit-success":        (*check).exitSuccess,
	"skill-invocation":    (*check).skillInvocation,
	"prompt":              (*check).prompt,
	"wall-time":           (*check).wallTime,
	"tool-calls":          (*check).toolCalls,
	"tool-call-count":     (*check).toolCallCount,
	"error-count":         (*check).errorCount,
	"token-budget":        func(c *check) { c.budget("max_tokens") },
	"turn-count":          func(c *check) { c.budget("max_iterations") },
	"panel":               (*check).panel,
	"run-command":         (*check).runCommand,
	"program":             (*check).program,
}

var graderKeys = []string{"type", "name", "config", "turn", "weight"}

// graders returns the graders of the stimulus. One that waza cannot decide blocks the stimulus.
func (s *stimulus) graders() (graders []*yaml.Node) {
	n := s.get("graders")
	if n != nil && n.Kind != yaml.SequenceNode {
		s.block(n, decode.CodeWrongType, "graders must be a list, got %s", describe(n))
		return nil
	}
	for i, item := range dialect.Items(n) {
		if item.Kind != yaml.MappingNode {
			s.block(item, decode.CodeWrongType, "graders[%d] must be a map with type, got %s", i, describe(item))
			continue
		}
		if g := s.grader(item); g != nil {
			graders = append(graders, g)
		}
	}
	if s.types[pairwiseGrader] && len(graders) == 0 && len(s.blocked) == 0 && len(dialect.Items(n)) > 0 {
		s.block(n, decode.CodeChecksNothing, "the stimulus has no grader other than pairwise, so no trial can be decided")
	}
	return graders
}

// pairwiseGrader is the type of a grader that Vally ran only to compare two runs, until it removed it.
const pairwiseGrader = "pairwise"

// grader returns one grader; nil if waza cannot decide it.
func (s *stimulus) grader(n *yaml.Node) *yaml.Node {
	c := &check{stimulus: s, node: n, vally: dialect.TextOf(decode.Lookup(n, "type")), config: dialect.NewMap(n)}
	s.types[c.vally] = true
	reasons := len(s.blocked)
	if c.vally == pairwiseGrader {
		s.warnOnce(pairwiseGrader, n, decode.CodeNoEffect, "the grader pairwise has no effect, because Vally uses it only to compare two runs; "+
			"use waza compare, or waza's grader prompt with mode: pairwise")
		return nil
	}
	translate, known := kinds[c.vally]
	if !known {
		s.block(n, decode.CodeUnknownGrader, "%s", unknownGrader(c.vally))
		return nil
	}
	for _, p := range dialect.Pairs(n) {
		if !slices.Contains(graderKeys, p.Key.Value) {
			c.cannot(p.Key, "has an unknown key %q", text.Clip(p.Key.Value, 60))
		}
	}
	if c.options = decode.Follow(decode.Lookup(n, "config")); decode.IsNull(c.options) {
		c.options = nil
	}
	if c.options != nil && c.options.Kind != yaml.MappingNode {
		c.cannot(c.options, "has a config that is no map")
		return nil
	}
	c.fillOptions()
	translate(c)
	for _, p := range dialect.Pairs(c.options) {
		if !slices.Contains(c.read, p.Key.Value) {
			c.cannot(p.Key, "has an unknown option %q", text.Clip(p.Key.Value, 60))
		}
	}
	c.readTurn()
	if len(s.blocked) > reasons {
		return nil
	}
	return c.build()
}

// unknownGrader explains why waza cannot decide a grader, and how to replace it.
func unknownGrader(kind string) string {
	switch kind {
	case "":
		return "a grader has no type"
	case "diff-empty", "diff-contains", "diff-not-contains":
		return fmt.Sprintf("waza does not have Vally's grader %q; write it as a grader of the type program", kind)
	}
	return fmt.Sprintf("%q is no grader that comes with Vally, and waza does not load those of plugins; write it as a grader of the type program",
		text.Clip(kind, 60))
}

// build returns the grader.
func (c *check) build() *yaml.Node {
	g := dialect.Map{Node: named(c.node, c.unique(c.name()), c.kind, c.config)}
	c.weigh(g, c.vally, decode.Follow(decode.Lookup(c.node, "weight")))
	if c.negate {
		g.Set("negate", dialect.Scalar(c.node, true))
	}
	graders := []*yaml.Node{g.Node}
	if c.kind == groupKind {
		graders = dialect.Items(c.config.Get("graders"))
	}
	for _, one := range graders {
		if c.turn > 0 {
			dialect.Map{Node: one}.Set("turn", dialect.Scalar(decode.Lookup(c.node, "turn"), c.turn))
		}
	}
	return g.Node
}

// name returns the name of the grader, or its type.
func (c *check) name() string { return cmp.Or(dialect.TextOf(decode.Lookup(c.node, "name")), c.vally) }

// unique returns a name that no other grader of the stimulus has, and reserves it.
func (c *check) unique(name string) string {
	unique := name
	for k := 2; c.names[unique]; k++ {
		unique = fmt.Sprintf("%s, %d", name, k)
	}
	c.names[unique] = true
	return unique
}

// readTurn reads the turn that the grader grades. Vally counts from 0.
func (c *check) readTurn() {
	n := decode.Follow(decode.Lookup(c.node, "turn"))
	if n == nil || decode.IsNull(n) {
		return
	}
	turns := 1 + len(dialect.Items(c.inputs.Get("follow_up_prompts")))
	turn, ok := decode.FloatOf(n)
	if !ok || turn != float64(int(turn)) || turn < 0 || turn >= float64(turns) {
		c.cannot(n, "needs a turn from 0 to %d, got %s", turns-1, describe(n))
		return
	}
	c.turn = int(turn) + 1
}

// cannot blocks the stimulus because of this grader.
func (c *check) cannot(at *yaml.Node, format string, args ...any) {
	c.block(at, decode.CodeUnknownOption, "line %d: the grader %s %s", c.node.Line, c.vally, fmt.Sprintf(format, args...))
}

// option returns the value of the first of some options that is present.
func (c *check) option(keys ...string) *yaml.Node {
	c.read = append(c.read, keys...)
	for _, key := range keys {
		if n := decode.Follow(decode.Lookup(c.options, key)); n != nil && !decode.IsNull(n) {
			return n
		}
	}
	return nil
}

// required returns the text of an option that a grader needs; nil after it blocked the stimulus.
func (c *check) required(keys ...string) *yaml.Node {
	n := c.option(keys...)
	if dialect.TextOf(n) == "" {
		at := n
		if at == nil {
			at = c.node
		}
		c.cannot(at, "needs a text as %s", keys[0])
		return nil
	}
	return n
}

// flag returns a boolean option.
func (c *check) flag(key string, standard bool) bool {
	n := c.option(key)
	if n == nil {
		return standard
	}
	value, ok := decode.BoolOf(n)
	if !ok {
		c.cannot(n, "needs true or false as %s", key)
	}
	return value
}

// pattern returns an option with a regular expression; nil after it blocked the stimulus.
func (c *check) pattern(key string) *yaml.Node {
	n := c.required(key)
	if n == nil {
		return nil
	}
	if _, err := pattern.Compile(pattern.JavaScript, n.Value); err != nil {
		c.cannot(n, "has an invalid pattern: %v", err)
		return nil
	}
	return n
}

func (c *check) outputMatches(absent bool) {
	c.kind = "text"
	if c.flag("negate", false) {
		absent = !absent
	}
	if p := c.pattern("pattern"); p != nil {
		c.config.Set(either(absent, "regex_not_match", "regex_match"), dialect.Texts(p, p.Value))
		c.config.Set("syntax", dialect.Scalar(p, "javascript"))
	}
}

func (c *check) outputContains(absent bool) {
	c.kind = "text"
	if c.flag("negate", false) {
		absent = !absent
	}
	exact := c.flag("case_sensitive", false)
	if n := c.required("substring", "value"); n != nil {
		key := either(absent, "not_contains", "contains")
		if exact {
			key += "_cs"
		}
		c.config.Set(key, dialect.Texts(n, n.Value))
	}
}

func (c *check) fileMatches(absent bool) {
	if p := c.pattern("pattern"); p != nil {
		c.fileContent(absent, p, p.Value)
	}
}

func (c *check) fileContains(absent bool) {
	exact := c.flag("case_sensitive", false)
	if n := c.required("substring", "value"); n != nil {
		c.fileContent(absent, n, either(exact, "", "(?i)")+regexp.QuoteMeta(n.Value))
	}
}

// fileContent looks for a pattern in the files at a path. No file with a match is the opposite of at least
// one, also if there is no file.
func (c *check) fileContent(absent bool, at *yaml.Node, pattern string) {
	c.kind, c.negate = "file", absent != c.flag("negate", false)
	n := c.required("path")
	if n == nil {
		return
	}
	content := dialect.NewMap(n)
	content.Set("path", dialect.Scalar(n, n.Value))
	content.Set("must_match", dialect.Texts(at, pattern))
	c.config.Set("content_patterns", dialect.List(n, content.Node))
	c.config.Set("syntax", dialect.Scalar(at, "javascript"))
}

func (c *check) fileExists(key string) {
	c.kind = "file"
	if c.flag("negate", false) {
		key = either(key == "must_exist", "must_not_exist", "must_exist")
	}
	if n := c.required("path"); n != nil {
		c.config.Set(key, dialect.Texts(n, n.Value))
	}
}

// completedCode is the expression of completed.
const completedCode = "output !== '' && errors.length === 0"

// completed passes if there is an output and no error. A turn that does not end is an error in waza.
func (c *check) completed() {
	c.assert(completedCode)
}

// exitSuccess passes if there is an output.
func (c *check) exitSuccess() {
	c.kind = "text"
	c.config.Set("regex_match", dialect.Texts(c.node, `[\s\S]`))
	c.config.Set("syntax", dialect.Scalar(c.node, "javascript"))
}

// assert makes a grader that evaluates JavaScript expressions, all of which must be true.
func (c *check) assert(expressions ...string) {
	c.kind = "code"
	c.config.Set("language", dialect.Scalar(c.node, "javascript"))
	c.config.Set("assertions", dialect.Texts(c.node, strings.Join(expressions, " && ")))
}

func (c *check) errorCount() {
	n := c.option("max", "limit")
	most := 0.0
	if n != nil {
		var ok bool
		if most, ok = decode.FloatOf(n); !ok {
			c.cannot(n, "needs a number as max")
		}
	}
	c.assert(fmt.Sprintf("errors.length <= %v", most))
}

func (c *check) skillInvocation() {
	c.kind = "skill_invocation"
	required, disallowed := c.texts("required"), c.texts("disallowed")
	if required == nil && disallowed == nil {
		c.cannot(c.node, "needs required or disallowed")
	}
	for _, n := range dialect.Items(disallowed) {
		if slices.ContainsFunc(dialect.Items(required), func(r *yaml.Node) bool { return r.Value == n.Value }) {
			c.cannot(n, "both requires and disallows %q", text.Clip(n.Value, 60))
		}
	}
	c.config.Set("required_skills", required)
	c.config.Set("forbidden_skills", disallowed)
	c.config.Set("mode", dialect.Scalar(c.node, "any_order"))
	c.config.Set("score", dialect.Scalar(c.node, "pass"))
}

// texts returns an option that is a list of texts, or one text; nil if it is absent or empty.
func (c *check) texts(key string) *yaml.Node {
	n := c.option(key)
	if n == nil {
		return nil
	}
	items := dialect.Items(n)
	if n.Kind == yaml.ScalarNode {
		items = []*yaml.Node{n}
	}
	list := dialect.List(n)
	for _, item := range items {
		if dialect.TextOf(item) == "" {
			c.cannot(item, "needs a list of texts as %s", key)
			return nil
		}
		list.Content = append(list.Content, dialect.Scalar(item, item.Value))
	}
	if n.Kind == yaml.MappingNode {
		c.cannot(n, "needs a list of texts as %s", key)
	}
	if len(list.Content) == 0 {
		return nil
	}
	return list
}

func (c *check) wallTime() {
	c.kind = "behavior"
	n := c.required("max")
	if n == nil {
		return
	}
	d, err := durationOf(n)
	if err != nil {
		c.cannot(n, "has a limit that waza does not know: max %v", err)
		return
	}
	c.config.Set("max_duration_ms", milliseconds(n, d))
}

// budget limits a number of the trial.
func (c *check) budget(key string) {
	c.kind = "behavior"
	n := c.option("max")
	if most, ok := floatOf(n); !ok || most < 1 || most != float64(int(most)) {
		c.cannot(firstOf(n, c.node), "needs a number from 1 on as max")
		return
	}
	c.config.Set(key, n)
}

func floatOf(n *yaml.Node) (float64, bool) {
	if n == nil {
		return 0, false
	}
	return decode.FloatOf(n)
}

func (c *check) toolCallCount() {
	c.kind = "tool_calls"
	least, most := c.option("min"), c.option("max")
	if least == nil && most == nil {
		c.cannot(c.node, "needs max or min")
	}
	if tools := c.texts("tools"); tools != nil {
		c.countCalls(tools, least, most)
		return
	}
	c.config.Set("min_calls", least)
	c.config.Set("max_calls", most)
}

// countCalls limits the calls of the tools whose names match one of some patterns.
func (c *check) countCalls(tools, least, most *yaml.Node) {
	c.kind = "tool_constraint"
	var names []string
	for _, n := range dialect.Items(tools) {
		if c.expression(n, n.Value); strings.HasPrefix(n.Value, "(?") && len(dialect.Items(tools)) > 1 {
			c.cannot(n, "has several tools, and flags in the pattern of one")
		}
		names = append(names, n.Value)
	}
	rule := dialect.NewMap(tools)
	rule.Set("tool", dialect.Scalar(tools, strings.Join(names, "|")))
	rule.Set("min", firstOf(least, dialect.Scalar(tools, 0)))
	rule.Set("max", most)
	c.config.Set("expect_tools", dialect.List(tools, rule.Node))
	c.config.Set("syntax", dialect.Scalar(tools, "javascript"))
}

// either returns the first text if a condition holds, else the second.
func either(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}
