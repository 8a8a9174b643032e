package behavior

import (
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/pattern"
	"waza/eval/text"
	"waza/runner/grader"
	"waza/runner/grader/internal/match"
	"waza/runner/record"
)

// ToolCalls checks how often the agent called tools, and which calls it made or did not make.
var ToolCalls = grader.KindOf(eval.Kind{
	Name: "tool_calls",
	Summary: "Checks which tools were called, how often and with which arguments. The score is the share of checks " +
		"met. Passes if all are met.",
}, checkToolCalls, NewToolCalls)

// ToolCallsOptions holds the options of the tool_calls grader.
type ToolCallsOptions struct {
	// Tools that the agent must call, by their exact names.
	RequiredTools []string `yaml:"required_tools"`
	// Tools that the agent must not call, by their exact names.
	ForbiddenTools []string `yaml:"forbidden_tools"`
	// Minimum number of tool calls.
	MinCalls *int `yaml:"min_calls" jsonschema:"minimum=0"`
	// Maximum number of tool calls; 0 allows none.
	MaxCalls *int `yaml:"max_calls" jsonschema:"minimum=0"`
	// Calls that the agent must make, each at least once.
	Expect []ToolSpec `yaml:"expect"`
	// Calls that the agent must make, at most 200. The tool scores of the trial are the share of
	// these calls that were made, and the share of their arguments that are right. A call counts
	// for one entry only, except that it can count for several entries with patterns alone.
	Required []CallPattern `yaml:"required"`
	// Calls that the agent must not make.
	Forbidden []CallPattern `yaml:"forbidden"`
}

// A CallPattern matches tool calls. In YAML it is a map, or a text, which is short for pattern.
type CallPattern struct {
	// Exact name of the tool. Can use template variables.
	Tool string `yaml:"tool"`
	// Expected values of arguments, by their names; a name with dots leads into maps. Values are
	// compared as JSON, numbers by value. Texts can use template variables. Arguments that are
	// not listed can have any value.
	Arguments map[string]any `yaml:"arguments"`
	// Regular expression (RE2) that must match somewhere in the tool's name, in any letter case.
	// Without args_pattern it can also match in the name and arguments together.
	Pattern string `yaml:"pattern"`
	// Regular expression (RE2) that must match somewhere in the arguments as JSON text, in any letter case.
	ArgsPattern string `yaml:"args_pattern"`
	// Minimum number of such calls; 1 when absent.
	Count int `yaml:"count" jsonschema:"minimum=0"`
}

// UnmarshalYAML accepts a map or a text.
func (p *CallPattern) UnmarshalYAML(n *yaml.Node) error {
	type plain CallPattern // without this method
	return textOrMap(n, &p.Pattern, (*plain)(p), "a pattern, or a map with the key pattern")
}

func checkToolCalls(c *eval.Check, o *ToolCallsOptions) {
	checkNames(c, "required_tools", o.RequiredTools)
	checkNames(c, "forbidden_tools", o.ForbiddenTools)
	for i := range o.Expect {
		o.Expect[i].check(c, decode.At("expect", i), pattern.RE2)
	}
	checkCallPatterns(c, "required", o.Required)
	checkCallPatterns(c, "forbidden", o.Forbidden)
	if o.MinCalls != nil && o.MaxCalls != nil && *o.MinCalls > *o.MaxCalls {
		c.Errorf(decode.At("min_calls"), decode.CodeInvalidValue, "min_calls %d is more than max_calls %d", *o.MinCalls, *o.MaxCalls)
	}
	checks := len(o.RequiredTools) + len(o.ForbiddenTools) + len(o.Expect) + len(o.Required) + len(o.Forbidden)
	if checks == 0 && o.MaxCalls == nil && (o.MinCalls == nil || *o.MinCalls == 0) {
		c.Errorf(decode.At(), decode.CodeChecksNothing,
			"nothing to check: give required_tools, forbidden_tools, min_calls, max_calls or expect")
	}
}

func checkCallPatterns(c *eval.Check, key string, patterns []CallPattern) {
	n := 0
	for i, p := range patterns {
		if p.Pattern == "" && p.ArgsPattern == "" && p.Tool == "" && len(p.Arguments) == 0 {
			c.Errorf(decode.At(key, i), decode.CodeMissingField, "%s[%d]: tool or pattern is missing", key, i)
		}
		if n += min(max(p.Count, 1), eval.MaxExpectedCalls+1); n > eval.MaxExpectedCalls && key == "required" {
			c.Errorf(decode.At(key, i), decode.CodeTooLarge, "%s lists more than %d calls", key, eval.MaxExpectedCalls)
			n = math.MinInt // report it once
		}
		c.Regexp(decode.At(key, i, "pattern"), p.Pattern)
		c.Regexp(decode.At(key, i, "args_pattern"), p.ArgsPattern)
	}
}

// NewToolCalls returns a grader of the given options. The error reports a pattern that does not compile.
func NewToolCalls(o *ToolCallsOptions, _ *grader.Env) (grader.Grader, error) {
	g := &toolCallsGrader{min: o.MinCalls, tools: slices.Concat(o.RequiredTools, o.ForbiddenTools)}
	g.counts = o.MinCalls != nil || o.MaxCalls != nil
	limits := BehaviorOptions{MaxToolCalls: o.MaxCalls, RequiredTools: o.RequiredTools, ForbiddenTools: o.ForbiddenTools}
	g.limits = limits.checks()
	var err error
	if g.expect, err = compileSpecs("expect", o.Expect, pattern.RE2); err != nil {
		return nil, err
	}
	if g.required, err = compileCallPatterns("required", o.Required); err != nil {
		return nil, err
	}
	g.forbidden, err = compileCallPatterns("forbidden", o.Forbidden)
	return g, err
}

type toolCallsGrader struct {
	min                 *int
	tools               []string // named by the limits
	counts              bool     // whether the number of calls is limited
	limits              []behaviorCheck
	expect              []*toolTest
	required, forbidden []callTest
}

// A callTest is a CallPattern ready for use.
type callTest struct {
	label      string
	tool       string         // empty means any
	arguments  map[string]any // in the types of exactJSON
	name, args *regexp.Regexp // nil means any
	count      int
}

// exclusive reports whether a call that meets the entry can meet no other entry. Entries with patterns
// alone can share calls.
func (t *callTest) exclusive() bool { return t.tool != "" || len(t.arguments) > 0 }

// expanded returns the entries with their template variables filled in.
func expanded(tests []callTest, s *grader.Subject) []callTest {
	filled := slices.Clone(tests)
	for i := range filled {
		t := &filled[i]
		t.tool = s.Expanded(t.tool)
		if len(t.arguments) > 0 {
			t.arguments, _ = expandedValue(t.arguments, s).(map[string]any)
		}
	}
	return filled
}

func expandedValue(v any, s *grader.Subject) any {
	switch v := v.(type) {
	case string:
		return s.Expanded(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = expandedValue(v[i], s)
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for name, value := range v {
			m[name] = expandedValue(value, s)
		}
		return m
	}
	return v
}

func compileCallPatterns(key string, patterns []CallPattern) ([]callTest, error) {
	var tests []callTest
	for i, p := range patterns {
		t := callTest{label: p.label(), tool: p.Tool, count: max(1, p.Count)}
		if len(p.Arguments) > 0 {
			t.arguments, _ = exactValue(p.Arguments).(map[string]any)
		}
		var err error
		if t.name, err = optionalPattern(p.Pattern); err != nil {
			return nil, fmt.Errorf("%s: %w", decode.At(key, i, "pattern"), err)
		}
		if t.args, err = optionalPattern(p.ArgsPattern); err != nil {
			return nil, fmt.Errorf("%s: %w", decode.At(key, i, "args_pattern"), err)
		}
		tests = append(tests, t)
	}
	return tests, nil
}

func optionalPattern(pattern string) (*regexp.Regexp, error) {
	if pattern == "" {
		return nil, nil
	}
	return match.Pattern(pattern, true)
}

// Expected returns the call that a pattern describes. fill replaces the template variables of a
// text.
func (p CallPattern) Expected(fill func(string) string) record.ExpectedCall {
	s := &grader.Subject{Expand: fill}
	e := record.ExpectedCall{Tool: s.Expanded(p.Tool)}
	if e.Tool == "" && p.Pattern != "" {
		e.Tool = "/" + p.Pattern + "/"
	}
	if len(p.Arguments) > 0 {
		e.Arguments, _ = expandedValue(exactValue(p.Arguments), s).(map[string]any)
	}
	return e
}

func (p CallPattern) label() string {
	var parts []string
	if p.Tool != "" {
		parts = append(parts, p.Tool)
	}
	if p.Pattern != "" {
		parts = append(parts, "/"+p.Pattern+"/")
	}
	if len(p.Arguments) > 0 {
		parts = append(parts, "with "+strings.Join(slices.Sorted(maps.Keys(p.Arguments)), ", "))
	}
	if p.ArgsPattern != "" {
		parts = append(parts, "with /"+p.ArgsPattern+"/")
	}
	return strings.Join(parts, " ")
}

// matches reports whether a call has the name and matches the patterns. It ignores the listed
// arguments; see right.
func (t *callTest) matches(c *toolCall) bool {
	if t.tool != "" && t.tool != c.name {
		return false
	}
	if t.args != nil {
		return (t.name == nil || t.name.MatchString(c.name)) && t.args.MatchString(c.text)
	}
	return t.name == nil || t.name.MatchString(c.name) || t.name.MatchString(c.name+" "+c.text)
}

// among counts the calls that match with all arguments right, and returns the first.
func (t *callTest) among(calls []toolCall) (n int, first *toolCall) {
	for i := range calls {
		if t.matches(&calls[i]) && t.right(&calls[i]) == 1 {
			if n++; first == nil {
				first = &calls[i]
			}
		}
	}
	return n, first
}

// NamesTool reports whether name is a required, forbidden or expected tool.
func (g *toolCallsGrader) NamesTool(s *grader.Subject, name string) bool {
	speaks := func(t callTest) bool {
		return t.tool != "" && s.Expanded(t.tool) == name || t.name != nil && t.name.MatchString(name)
	}
	return slices.Contains(g.tools, name) || names(g.expect, name) || slices.ContainsFunc(g.required, speaks) ||
		slices.ContainsFunc(g.forbidden, speaks)
}

// ReadsAllCalls reports whether an entry is about the number of calls, or about calls of any tool.
func (g *toolCallsGrader) ReadsAllCalls() bool {
	anyTool := func(t callTest) bool { return t.tool == "" && t.name == nil }
	return g.counts || namesAny(g.expect) || slices.ContainsFunc(g.required, anyTool) || slices.ContainsFunc(g.forbidden, anyTool)
}

func (g *toolCallsGrader) Grade(_ context.Context, s *grader.Subject) (grader.Score, error) {
	var t grader.Checklist
	for i := range g.limits {
		if err := g.limits[i].add(&t, s); err != nil {
			return grader.Score{}, err
		}
	}
	if g.min != nil {
		complaint := ""
		if n := len(s.ToolCalls); n < *g.min {
			complaint = fmt.Sprintf("%s, fewer than min_calls %d", text.Count(n, "tool call", "tool calls"), *g.min)
		}
		t.Presence(fmt.Sprintf("min_calls %d", *g.min), complaint, s.TranscriptCut())
	}
	calls := decodedCalls(s)
	if err := addExpected(&t, g.expect, calls, s); err != nil {
		return grader.Score{}, err
	}
	tools := g.addPatterns(&t, calls, s)
	score, err := t.Result()
	if err == nil && s.TranscriptCut() == nil {
		score.Tools = tools
	}
	return score, err
}

// addPatterns checks required and forbidden calls, and returns the tool scores.
func (g *toolCallsGrader) addPatterns(t *grader.Checklist, calls []toolCall, s *grader.Subject) (tools *record.TrialTools) {
	required := expanded(g.required, s)
	var found [][]matchedCall
	if len(required) > 0 {
		found = matched(required, calls)
		tools = scores(required, found, len(s.ToolCalls))
	}
	for i, test := range required {
		complaint := ""
		if test.exclusive() {
			complaint = test.complaint(found[i], s)
		} else if n, _ := test.among(calls); n < test.count {
			complaint = fmt.Sprintf("%s of %s, fewer than %d; called: %s", text.Count(n, "call", "calls"), test.label, test.count, s.CalledTools())
		}
		t.Presence("required "+test.label, complaint, s.TranscriptCut())
	}
	for _, test := range expanded(g.forbidden, s) {
		complaint := ""
		if n, first := test.among(calls); n > 0 {
			complaint = fmt.Sprintf("%s of %s, which is forbidden: %s with %s", text.Count(n, "call", "calls"),
				test.label, first.name, grader.Excerpt(first.text))
		}
		t.Absence("forbidden "+test.label, complaint, s.TranscriptCut())
	}
	return tools
}
