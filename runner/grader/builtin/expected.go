package builtin

import (
	"context"
	"fmt"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/grader/behavior"
	"waza/runner/grader/output"
	"waza/runner/record"
)

// ForExpected returns graders for a task's expected, with their names in suites
// ("_output_contains" and so on). It omits what the executor cannot show: should_trigger if the
// executor reports no skills, and recipients if it has no clients. The error reports a bad
// pattern.
func ForExpected(t *eval.Task, caps executor.Capabilities) ([]*grader.Bound, error) {
	e := t.Expected
	if e == nil {
		return nil, nil
	}
	var all []*grader.Bound
	add := func(name, typ string, g grader.Grader, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, grader.NewBound(name, typ, 1, g))
		return nil
	}
	for _, l := range []struct {
		name    string
		options output.TextOptions
		given   bool
	}{
		{"_output_contains", output.TextOptions{Contains: e.OutputContains}, len(e.OutputContains) > 0},
		{"_output_not_contains", output.TextOptions{NotContains: e.OutputNotContains}, len(e.OutputNotContains) > 0},
		{"_matches", output.TextOptions{MustMatch: e.Matches}, len(e.Matches) > 0},
	} {
		if !l.given {
			continue
		}
		g, err := output.NewText(&l.options, nil)
		if err := add(l.name, "text", g, err); err != nil {
			return nil, err
		}
	}
	if len(e.OutputContainsAny) > 0 {
		g, err := output.NewAnyOf(e.OutputContainsAny)
		if err := add("_output_contains_any", "text", g, err); err != nil {
			return nil, err
		}
	}
	if o := expectedBehavior(e.Behavior); !o.Empty() {
		g, err := behavior.NewBehavior(o, nil)
		if err := add("_behavior", "behavior", g, err); err != nil {
			return nil, err
		}
	}
	if c := e.ToolCalls; c != nil && len(c.Required)+len(c.Forbidden) > 0 {
		g, err := behavior.NewToolCalls(&behavior.ToolCallsOptions{Required: callPatterns(c.Required), Forbidden: callPatterns(c.Forbidden)}, nil)
		if err := add("_tool_calls", "tool_calls", g, err); err != nil {
			return nil, err
		}
	}
	return append(all, expectedEnd(e, caps)...), nil
}

// ExpectedCalls returns the tool calls that the tool scores of a task rate. fill replaces the
// template variables of a text.
func ExpectedCalls(t *eval.Task, fill func(string) string) []record.ExpectedCall {
	var required []behavior.CallPattern
	for _, spec := range t.Effective {
		if o, ok := spec.Options.(*behavior.ToolCallsOptions); ok && len(o.Required) > 0 {
			required = o.Required
		}
	}
	if e := t.Expected; e != nil && e.ToolCalls != nil && len(e.ToolCalls.Required) > 0 {
		required = callPatterns(e.ToolCalls.Required)
	}
	var calls []record.ExpectedCall
	for i := range required {
		calls = append(calls, required[i].Expected(fill))
	}
	return calls
}

// expectedEnd returns the graders of should_trigger, recipients and outcomes.
func expectedEnd(e *eval.Expected, caps executor.Capabilities) []*grader.Bound {
	var all []*grader.Bound
	if e.ShouldTrigger != nil && caps.Skills {
		all = append(all, behavior.ForTrigger(&record.TriggerRef{ShouldTrigger: *e.ShouldTrigger}))
	}
	if e.Recipients != nil && caps.Clients {
		all = append(all, behavior.ForRecipients(e.Recipients))
	}
	if g := expectedOutcomes(e.Outcomes); g != nil {
		all = append(all, grader.NewBound("_outcomes", "outcomes", 1, g))
	}
	return all
}

// expectedOutcomes returns the grader of the expected outcomes, or nil if none can be graded.
func expectedOutcomes(list []eval.ExpectedOutcome) grader.Grader {
	var tools []string
	completed := false
	for _, o := range list {
		switch tool := o.CalledTool(); {
		case o.Type == eval.OutcomeCompleted:
			completed = true
		case o.Type == eval.OutcomeToolCalled && tool != "":
			tools = append(tools, tool)
		}
	}
	if len(tools) > 0 {
		g, _ := behavior.NewBehavior(&behavior.BehaviorOptions{RequiredTools: tools}, nil) // names always compile
		return g
	}
	if completed {
		return outcomes{}
	}
	return nil
}

func expectedBehavior(e *eval.ExpectedBehavior) *behavior.BehaviorOptions {
	if e == nil {
		return &behavior.BehaviorOptions{}
	}
	o := &behavior.BehaviorOptions{
		MaxToolCalls: e.MaxToolCalls, MaxIterations: e.MaxIterations, MaxDurationMS: e.MaxResponseTimeMS,
		RequiredTools: e.RequiredTools, ForbiddenTools: e.ForbiddenTools,
	}
	if e.MaxTokens != nil {
		most := int64(*e.MaxTokens)
		o.MaxTokens = &most
	}
	return o
}

func callPatterns(expected []eval.ExpectedToolCall) []behavior.CallPattern {
	patterns := make([]behavior.CallPattern, len(expected))
	for i, e := range expected {
		patterns[i] = behavior.CallPattern{Tool: e.Tool, Arguments: e.Arguments, Pattern: e.Pattern, ArgsPattern: e.ArgsPattern, Count: e.Count}
	}
	return patterns
}

// outcomes passes every graded trial. Only trials whose executor ended normally are graded, so
// nothing is left to check.
type outcomes struct{}

func (outcomes) Grade(context.Context, *grader.Subject) (grader.Score, error) {
	return grader.Score{Score: 1, Passed: true}, nil
}
