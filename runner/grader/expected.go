package grader

import (
	"context"
	"fmt"
	"slices"

	"waza/eval"
	"waza/runner/executor"
)

// ForExpected returns graders for what a task says under expected, named as
// suites know them ("_output_contains" and so on). What the executor cannot
// show is left out: should_trigger where it reports no skills. The error tells
// of a bad pattern.
func ForExpected(t *eval.Task, caps executor.Capabilities) ([]*Bound, error) {
	e := t.Expected
	if e == nil {
		return nil, nil
	}
	var all []*Bound
	add := func(name, typ string, g Grader, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, NewBound(name, typ, 1, g))
		return nil
	}
	for _, l := range []struct {
		name    string
		options TextOptions
		given   bool
	}{
		{"_output_contains", TextOptions{Contains: e.OutputContains}, len(e.OutputContains) > 0},
		{"_output_not_contains", TextOptions{NotContains: e.OutputNotContains}, len(e.OutputNotContains) > 0},
		{"_matches", TextOptions{MustMatch: e.Matches}, len(e.Matches) > 0},
	} {
		if !l.given {
			continue
		}
		g, err := newText(&l.options, nil)
		if err := add(l.name, "text", g, err); err != nil {
			return nil, err
		}
	}
	if len(e.OutputContainsAny) > 0 {
		checks, err := textChecks(&TextOptions{Contains: e.OutputContainsAny})
		if err := add("_output_contains_any", "text", anyOf{checks, e.OutputContainsAny}, err); err != nil {
			return nil, err
		}
	}
	if o := expectedBehavior(e.Behavior); len(o.checks()) > 0 {
		g, err := newBehavior(o, nil)
		if err := add("_behavior", "behavior", g, err); err != nil {
			return nil, err
		}
	}
	if c := e.ToolCalls; c != nil && len(c.Required)+len(c.Forbidden) > 0 {
		g, err := newToolCalls(&ToolCallsOptions{Required: callPatterns(c.Required), Forbidden: callPatterns(c.Forbidden)}, nil)
		if err := add("_tool_calls", "tool_calls", g, err); err != nil {
			return nil, err
		}
	}
	return append(all, expectedEnd(e, caps)...), nil
}

// expectedEnd returns the graders of should_trigger and outcomes.
func expectedEnd(e *eval.Expected, caps executor.Capabilities) []*Bound {
	var all []*Bound
	if e.ShouldTrigger != nil && caps.Skills {
		all = append(all, ForTrigger("", *e.ShouldTrigger))
	}
	completed := func(o eval.ExpectedOutcome) bool { return o.Type == outcomeCompleted }
	if slices.ContainsFunc(e.Outcomes, completed) {
		all = append(all, NewBound("_outcomes", "outcomes", 1, outcomes{}))
	}
	return all
}

func expectedBehavior(e *eval.ExpectedBehavior) *BehaviorOptions {
	if e == nil {
		return &BehaviorOptions{}
	}
	o := &BehaviorOptions{
		MaxToolCalls: e.MaxToolCalls, MaxIterations: e.MaxIterations, MaxDurationMS: e.MaxResponseTimeMS,
		RequiredTools: e.RequiredTools, ForbiddenTools: e.ForbiddenTools,
	}
	if e.MaxTokens != nil {
		most := int64(*e.MaxTokens)
		o.MaxTokens = &most
	}
	return o
}

func callPatterns(expected []eval.ExpectedToolCall) []CallPattern {
	patterns := make([]CallPattern, len(expected))
	for i, e := range expected {
		patterns[i] = CallPattern{Pattern: e.Pattern, ArgsPattern: e.ArgsPattern, Count: e.Count}
	}
	return patterns
}

// anyOf is met when one of the checks of a text grader is.
type anyOf struct {
	checks []textCheck
	texts  []string
}

func (g anyOf) Grade(_ context.Context, s *Subject) (Score, error) {
	var t tally
	folded := foldCase(s.Output)
	for i := range g.checks {
		c := &g.checks[i]
		t.presence(c.label, c.complaint(s, folded), s.outputCut())
	}
	switch {
	case t.met > 0:
		return Score{Score: 1, Passed: true}, nil
	case t.undecided > 0:
		return Score{}, t.why
	}
	return Score{
		Feedback: fmt.Sprintf("the output contains none of %q\noutput: %s", g.texts, excerpt(s.Output)),
		Details:  t.checks,
	}, nil
}

// outcomeCompleted is the outcome that graders can tell.
const outcomeCompleted = "task_completed"

// outcomes is met by every trial that is graded: only those whose executor ended
// normally are, so there is nothing left to ask.
type outcomes struct{}

func (outcomes) Grade(context.Context, *Subject) (Score, error) {
	return Score{Score: 1, Passed: true}, nil
}
