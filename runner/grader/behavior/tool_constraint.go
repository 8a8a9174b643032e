package behavior

import (
	"context"
	"fmt"
	"slices"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/pattern"
	"waza/eval/text"
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
	// Whether the expected calls must be in the order of the list, with other calls between them.
	Ordered bool `yaml:"ordered" json:",omitempty"`
	// Pairs of calls, of which the first call of one must precede the first call of the other.
	Order []ToolOrder `yaml:"order" json:",omitempty"`
	// Syntax of the regular expressions: that of Go (RE2), or that of JavaScript. Those of JavaScript match
	// anywhere, also in names of tools, and in the same letter case unless they start with (?i). A search of
	// more than a second is an error.
	Syntax pattern.Syntax `yaml:"syntax" json:",omitempty" jsonschema:"enum=re2,enum=javascript,default=re2"`
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

// A ToolOrder names two calls that the agent must make in this order.
type ToolOrder struct {
	// Call whose first occurrence must come first.
	Before ToolSpec `yaml:"before" jsonschema:"required"`
	// Call whose first occurrence must come later.
	After ToolSpec `yaml:"after" jsonschema:"required"`
}

func checkToolConstraint(c *eval.Check, o *ToolConstraintOptions) {
	for i := range o.ExpectTools {
		at := decode.At("expect_tools", i)
		if o.ExpectTools[i].check(c, at, o.Syntax); o.Ordered {
			o.ExpectTools[i].checkUncounted(c, at)
		}
	}
	for i := range o.RejectTools {
		o.RejectTools[i].check(c, decode.At("reject_tools", i), o.Syntax)
		o.RejectTools[i].checkUncounted(c, decode.At("reject_tools", i))
	}
	for i := range o.Order {
		for name, t := range map[string]*ToolSpec{"before": &o.Order[i].Before, "after": &o.Order[i].After} {
			t.check(c, decode.At("order", i, name), o.Syntax)
			t.checkUncounted(c, decode.At("order", i, name))
		}
	}
	checkAllowed(c, o.AllowOnly)
	if len(o.ExpectTools)+len(o.RejectTools)+len(o.Order) == 0 && o.AllowOnly == nil && o.MaxTurns == 0 && o.MaxTokens == 0 {
		c.Errorf(decode.At(), decode.CodeChecksNothing, "nothing to check: give expect_tools, reject_tools or allow_only")
	}
}

func newToolConstraint(o *ToolConstraintOptions, _ *grader.Env) (grader.Grader, error) {
	g := &toolConstraintGrader{allowsOnly: o.AllowOnly != nil, ordered: o.Ordered}
	var err error
	if g.expect, err = compileSpecs("expect_tools", o.ExpectTools, o.Syntax); err != nil {
		return nil, err
	}
	if g.reject, err = compileSpecs("reject_tools", o.RejectTools, o.Syntax); err != nil {
		return nil, err
	}
	for i := range o.Order {
		pair, err := compileSpecs("order", []ToolSpec{o.Order[i].Before, o.Order[i].After}, o.Syntax)
		if err != nil {
			return nil, err
		}
		g.order = append(g.order, pair...)
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

func compileSpecs(key string, specs []ToolSpec, syntax pattern.Syntax) ([]*toolTest, error) {
	tests := make([]*toolTest, len(specs))
	for i := range specs {
		t, err := specs[i].compile(syntax)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", decode.At(key, i), err)
		}
		tests[i] = t
	}
	return tests, nil
}

type toolConstraintGrader struct {
	expect, reject []*toolTest
	ordered        bool        // the expected calls
	order          []*toolTest // pairs
	limits         []behaviorCheck
	allowed        []string // by [allowedName]
	allowsOnly     bool     // no tools are allowed but these
}

// NamesTool reports whether name is an expected, rejected or allowed tool.
func (g *toolConstraintGrader) NamesTool(_ *grader.Subject, name string) bool {
	return names(g.expect, name) || names(g.reject, name) || names(g.order, name) || slices.Contains(g.allowed, allowedName(name))
}

// ReadsAllCalls reports whether allow_only lists the tools, or an entry is about calls of any tool.
func (g *toolConstraintGrader) ReadsAllCalls() bool {
	return g.allowsOnly || namesAny(g.expect) || namesAny(g.reject) || namesAny(g.order)
}

// namesAny reports whether a test is about calls of any tool.
func namesAny(tests []*toolTest) bool {
	return slices.ContainsFunc(tests, func(t *toolTest) bool { return t.name == nil })
}

// names reports whether one of the tests names a tool.
func names(tests []*toolTest, name string) bool {
	return slices.ContainsFunc(tests, func(t *toolTest) bool { return t.names(name) })
}

func (g *toolConstraintGrader) Grade(_ context.Context, s *grader.Subject) (grader.Score, error) {
	var t grader.Checklist
	if err := g.addCalls(&t, s); err != nil {
		return grader.Score{}, err
	}
	for i := range g.limits {
		if err := g.limits[i].add(&t, s); err != nil {
			return grader.Score{}, err
		}
	}
	return t.Result()
}

// addCalls adds the checks of calls.
func (g *toolConstraintGrader) addCalls(t *grader.Checklist, s *grader.Subject) error {
	calls := callsInOrder(s)
	add := addExpected
	if g.ordered {
		add = addOrdered
	}
	if err := add(t, g.expect, calls, s); err != nil {
		return err
	}
	for _, test := range g.reject {
		complaint := ""
		at, _, err := test.first(calls)
		if err != nil {
			return err
		}
		if at >= 0 {
			complaint = fmt.Sprintf("rejected call of %s: %s with %s", test.label, calls[at].name, grader.Excerpt(calls[at].text))
		}
		t.Absence("reject "+test.label, complaint, s.TranscriptCut())
	}
	for pair := range slices.Chunk(g.order, 2) {
		if err := addPair(t, pair[0], pair[1], calls, s); err != nil {
			return err
		}
	}
	return nil
}

// addExpected adds one check for each expected call, and one for each maximum of calls.
func addExpected(t *grader.Checklist, tests []*toolTest, calls []toolCall, s *grader.Subject) error {
	for _, test := range tests {
		n, near, err := test.count(calls)
		if err != nil {
			return err
		}
		if test.least > 0 || test.most < 0 {
			complaint := ""
			switch {
			case n >= test.least:
			case n == 0:
				complaint = fmt.Sprintf("no call of %s; called: %s%s", test.label, s.CalledTools(), near)
			default:
				complaint = fmt.Sprintf("%s of %s, fewer than min %d%s", text.Count(n, "call", "calls"), test.label, test.least, near)
			}
			t.Presence("expect "+test.label, complaint, s.TranscriptCut())
		}
		if test.most >= 0 {
			complaint := ""
			if n > test.most {
				complaint = fmt.Sprintf("%s of %s, more than max %d", text.Count(n, "call", "calls"), test.label, test.most)
			}
			t.Absence(fmt.Sprintf("at most %d of %s", test.most, test.label), complaint, s.TranscriptCut())
		}
	}
	return nil
}

// addOrdered adds one check for each expected call, which must follow the call before it in the list.
func addOrdered(t *grader.Checklist, tests []*toolTest, calls []toolCall, s *grader.Subject) error {
	rest, after := calls, ""
	for _, test := range tests {
		at, near, err := test.first(rest)
		if err != nil {
			return err
		}
		complaint := ""
		if at < 0 {
			complaint = fmt.Sprintf("no call of %s%s; called: %s%s", test.label, after, s.CalledTools(), near)
		} else {
			rest, after = rest[at+1:], " after that of "+test.label
		}
		t.Presence("expect "+test.label+" in order", complaint, s.TranscriptCut())
	}
	return nil
}

// addPair adds a check that the first call of one kind precedes the first of another.
func addPair(t *grader.Checklist, before, after *toolTest, calls []toolCall, s *grader.Subject) error {
	one, nearOne, err := before.first(calls)
	if err != nil {
		return err
	}
	other, nearOther, err := after.first(calls)
	if err != nil {
		return err
	}
	complaint := ""
	switch {
	case one < 0:
		complaint = fmt.Sprintf("no call of %s; called: %s%s", before.label, s.CalledTools(), nearOne)
	case other < 0:
		complaint = fmt.Sprintf("no call of %s; called: %s%s", after.label, s.CalledTools(), nearOther)
	case one == other:
		complaint = fmt.Sprintf("the first call of %s is also that of %s", before.label, after.label)
	case one > other:
		complaint = fmt.Sprintf("the first call of %s precedes that of %s", after.label, before.label)
	}
	t.Presence(before.label+" before "+after.label, complaint, s.TranscriptCut())
	return nil
}
