package behavior

import (
	"context"
	"fmt"
	"regexp"

	"gopkg.in/yaml.v3"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/text"
	"waza/runner/grader"
	"waza/runner/grader/match"
)

// ToolCalls checks how often tools were called, and calls that must and must not occur.
var ToolCalls = grader.KindOf(eval.Kind{
	Name:    "tool_calls",
	Summary: "Checks which tools were called, how often and with what. The score is the share of checks met; all must be.",
}, checkToolCalls, NewToolCalls)

// ToolCallsOptions are the options of the tool_calls grader.
type ToolCallsOptions struct {
	// Tools that must be called, by their exact names.
	RequiredTools []string `yaml:"required_tools"`
	// Tools that must not be called, by their exact names.
	ForbiddenTools []string `yaml:"forbidden_tools"`
	// Least number of tool calls.
	MinCalls *int `yaml:"min_calls" jsonschema:"minimum=0"`
	// Most tool calls; 0 allows none.
	MaxCalls *int `yaml:"max_calls" jsonschema:"minimum=0"`
	// Calls of which there must be at least one each.
	Expect []ToolSpec `yaml:"expect"`
	// Older spelling: patterns of calls that must be made.
	Required []CallPattern `yaml:"required" jsonschema_extras:"deprecated=true"`
	// Older spelling: patterns of calls that must not be made.
	Forbidden []CallPattern `yaml:"forbidden" jsonschema_extras:"deprecated=true"`
}

// CallPattern matches tool calls, in any letter case. In YAML it is a map, or a
// text, which means pattern.
type CallPattern struct {
	// Regular expression (RE2) that must match somewhere in the tool's name; without args_pattern also in the name and
	// arguments together.
	Pattern string `yaml:"pattern"`
	// Regular expression (RE2) that must match somewhere in the arguments as JSON text.
	ArgsPattern string `yaml:"args_pattern"`
	// Least number of such calls; 1 when absent.
	Count int `yaml:"count" jsonschema:"minimum=0"`
}

// UnmarshalYAML takes both shapes.
func (p *CallPattern) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(&p.Pattern)
	}
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("must be a map with pattern, or a pattern")
	}
	type plain CallPattern // without this method
	return strictDecode(n, (*plain)(p))
}

func checkToolCalls(c *eval.Check, o *ToolCallsOptions) {
	checkNames(c, "required_tools", o.RequiredTools)
	checkNames(c, "forbidden_tools", o.ForbiddenTools)
	for i := range o.Expect {
		o.Expect[i].check(c, decode.At("expect", i))
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
	for i, p := range patterns {
		if p.Pattern == "" && p.ArgsPattern == "" {
			c.Errorf(decode.At(key, i), decode.CodeMissingField, "%s[%d]: pattern is missing", key, i)
		}
		c.Regexp(decode.At(key, i, "pattern"), p.Pattern)
		c.Regexp(decode.At(key, i, "args_pattern"), p.ArgsPattern)
	}
}

// NewToolCalls returns a grader of the given options. The error reports a pattern that does not compile.
func NewToolCalls(o *ToolCallsOptions, _ *grader.Env) (grader.Grader, error) {
	g := &toolCallsGrader{min: o.MinCalls}
	limits := BehaviorOptions{MaxToolCalls: o.MaxCalls, RequiredTools: o.RequiredTools, ForbiddenTools: o.ForbiddenTools}
	g.limits = limits.checks()
	var err error
	if g.expect, err = compileSpecs("expect", o.Expect); err != nil {
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
	limits              []behaviorCheck
	expect              []*toolTest
	required, forbidden []callTest
}

// callTest is a CallPattern ready for use.
type callTest struct {
	label      string
	name, args *regexp.Regexp // nil means any
	count      int
}

func compileCallPatterns(key string, patterns []CallPattern) ([]callTest, error) {
	var tests []callTest
	for i, p := range patterns {
		t := callTest{label: p.label(), count: max(1, p.Count)}
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

func (p CallPattern) label() string {
	switch {
	case p.ArgsPattern == "":
		return "/" + p.Pattern + "/"
	case p.Pattern == "":
		return "with /" + p.ArgsPattern + "/"
	}
	return "/" + p.Pattern + "/ with /" + p.ArgsPattern + "/"
}

func (t *callTest) matches(c *toolCall) bool {
	if t.args != nil {
		return (t.name == nil || t.name.MatchString(c.name)) && t.args.MatchString(c.text)
	}
	return t.name == nil || t.name.MatchString(c.name) || t.name.MatchString(c.name+" "+c.text)
}

// among counts the calls that match and returns the first.
func (t *callTest) among(calls []toolCall) (n int, first *toolCall) {
	for i := range calls {
		if t.matches(&calls[i]) {
			if n++; first == nil {
				first = &calls[i]
			}
		}
	}
	return n, first
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
	addExpected(&t, g.expect, calls, s)
	g.addPatterns(&t, calls, s)
	return t.Result()
}

func (g *toolCallsGrader) addPatterns(t *grader.Checklist, calls []toolCall, s *grader.Subject) {
	for _, test := range g.required {
		complaint := ""
		if n, _ := test.among(calls); n < test.count {
			complaint = fmt.Sprintf("%s of %s, fewer than %d; called: %s", text.Count(n, "call", "calls"), test.label, test.count, s.CalledTools())
		}
		t.Presence("required "+test.label, complaint, s.TranscriptCut())
	}
	for _, test := range g.forbidden {
		complaint := ""
		if n, first := test.among(calls); n > 0 {
			complaint = fmt.Sprintf("%s of %s, which must not be: %s with %s", text.Count(n, "call", "calls"), test.label, first.name, grader.Excerpt(first.text))
		}
		t.Absence("forbidden "+test.label, complaint, s.TranscriptCut())
	}
}
