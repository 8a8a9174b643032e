package behavior

import (
	"context"
	"fmt"
	"slices"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/grader"
)

// ToolConstraint checks tool calls with their arguments, and the turns and tokens of a trial.
var ToolConstraint = grader.KindOf(eval.Kind{
	Name: "tool_constraint",
	Summary: "Requires and forbids tool calls by name and arguments. Each entry is one check. The score is the " +
		"share of checks met. Passes if all are met.",

	ToolList: "allow_only",
}, checkToolConstraint, newToolConstraint)

// ToolConstraintOptions holds the options of the tool_constraint grader.
type ToolConstraintOptions struct {
	// Calls that the agent must make, each at least once.
	ExpectTools []ToolSpec `yaml:"expect_tools"`
	// Calls that the agent must not make.
	RejectTools []ToolSpec `yaml:"reject_tools"`
	// The only tools that the agent can call; an empty list allows none.
	AllowOnly []AllowedTool `yaml:"allow_only"`
	// Maximum number of turns of the agent; 0 means no limit.
	MaxTurns int `yaml:"max_turns" jsonschema:"minimum=0"`
	// Maximum number of tokens, input and output together; 0 means no limit. If the executor
	// reports no tokens, the trial is an error.
	MaxTokens int64 `yaml:"max_tokens" jsonschema:"minimum=0"`
}

func checkToolConstraint(c *eval.Check, o *ToolConstraintOptions) {
	for i := range o.ExpectTools {
		o.ExpectTools[i].check(c, decode.At("expect_tools", i))
	}
	for i := range o.RejectTools {
		o.RejectTools[i].check(c, decode.At("reject_tools", i))
	}
	checkAllowed(c, o.AllowOnly)
	if len(o.ExpectTools)+len(o.RejectTools) == 0 && o.AllowOnly == nil && o.MaxTurns == 0 && o.MaxTokens == 0 {
		c.Errorf(decode.At(), decode.CodeChecksNothing, "nothing to check: give expect_tools, reject_tools or allow_only")
	}
}

func newToolConstraint(o *ToolConstraintOptions, _ *grader.Env) (grader.Grader, error) {
	g := &toolConstraintGrader{allowsOnly: o.AllowOnly != nil}
	var err error
	if g.expect, err = compileSpecs("expect_tools", o.ExpectTools); err != nil {
		return nil, err
	}
	if g.reject, err = compileSpecs("reject_tools", o.RejectTools); err != nil {
		return nil, err
	}
	var limits BehaviorOptions
	if o.MaxTurns > 0 {
		limits.MaxIterations = &o.MaxTurns
	}
	if o.MaxTokens > 0 {
		limits.MaxTokens = &o.MaxTokens
	}
	for _, a := range o.AllowOnly {
		g.allowed = append(g.allowed, allowedName(a.Tool))
	}
	g.limits = append(allowedCheck(o.AllowOnly), limits.checks()...)
	return g, nil
}

func compileSpecs(key string, specs []ToolSpec) ([]*toolTest, error) {
	tests := make([]*toolTest, len(specs))
	for i := range specs {
		t, err := specs[i].compile()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", decode.At(key, i), err)
		}
		tests[i] = t
	}
	return tests, nil
}

type toolConstraintGrader struct {
	expect, reject []*toolTest
	limits         []behaviorCheck
	allowed        []string // by [allowedName]
	allowsOnly     bool     // no tools are allowed but these
}

// NamesTool reports whether name is an expected, rejected or allowed tool.
func (g *toolConstraintGrader) NamesTool(_ *grader.Subject, name string) bool {
	return names(g.expect, name) || names(g.reject, name) || slices.Contains(g.allowed, allowedName(name))
}

// ReadsAllCalls reports whether allow_only lists the tools, or an entry is about calls of any tool.
func (g *toolConstraintGrader) ReadsAllCalls() bool {
	return g.allowsOnly || namesAny(g.expect) || namesAny(g.reject)
}

// namesAny reports whether a test is about calls of any tool.
func namesAny(tests []*toolTest) bool {
	return slices.ContainsFunc(tests, func(t *toolTest) bool { return t.name == nil })
}

// names reports whether one of the tests names a tool.
func names(tests []*toolTest, name string) bool {
	return slices.ContainsFunc(tests, func(t *toolTest) bool { return t.name != nil && t.name.MatchString(name) })
}

func (g *toolConstraintGrader) Grade(_ context.Context, s *grader.Subject) (grader.Score, error) {
	calls := decodedCalls(s)
	var t grader.Checklist
	addExpected(&t, g.expect, calls, s)
	for _, test := range g.reject {
		complaint := ""
		if call, _ := test.first(calls); call != nil {
			complaint = fmt.Sprintf("rejected call of %s: %s with %s", test.label, call.name, grader.Excerpt(call.text))
		}
		t.Absence("reject "+test.label, complaint, s.TranscriptCut())
	}
	for i := range g.limits {
		if err := g.limits[i].add(&t, s); err != nil {
			return grader.Score{}, err
		}
	}
	return t.Result()
}

// addExpected adds one check for each expected call.
func addExpected(t *grader.Checklist, tests []*toolTest, calls []toolCall, s *grader.Subject) {
	for _, test := range tests {
		complaint := ""
		if call, near := test.first(calls); call == nil {
			complaint = fmt.Sprintf("no call of %s; called: %s%s", test.label, s.CalledTools(), near)
		}
		t.Presence("expect "+test.label, complaint, s.TranscriptCut())
	}
}
