// Package behavior grades how an agent worked: which tools and skills it used, in which order,
// and with how many turns, tokens and seconds. Programs use its kinds through the registry of
// [waza/runner/grader/builtin]. [ForTrigger] builds the grader of a trigger test.
package behavior

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/grader"
)

// Behavior limits time, turns, tokens and tool calls, and checks which tools were used.
var Behavior = grader.KindOf(eval.Kind{
	Name:    "behavior",
	Summary: "Limits how the agent works: tool calls, turns, tokens and time. The score is the share of checks met. Passes if all are met.",
}, checkBehavior, NewBehavior)

// BehaviorOptions holds the options of the behavior grader. Absent limits are not checked.
type BehaviorOptions struct {
	// Maximum number of tool calls; 0 allows none.
	MaxToolCalls *int `yaml:"max_tool_calls" jsonschema:"minimum=0"`
	// Maximum number of tokens, input and output together. If the executor reports no tokens,
	// the trial is an error.
	MaxTokens *int64 `yaml:"max_tokens" jsonschema:"minimum=0"`
	// Maximum number of milliseconds from prompt to answer.
	MaxDurationMS *int64 `yaml:"max_duration_ms" jsonschema:"minimum=0"`
	// Maximum number of errors that the transcript records; 0 allows none.
	MaxErrors *int `yaml:"max_errors" json:",omitempty" jsonschema:"minimum=0"`
	// Maximum cost of the agent in US dollars. If the cost is unknown, the trial is an error: give prices
	// of models that do not report it.
	MaxCostUSD *float64 `yaml:"max_cost_usd" json:",omitempty" jsonschema:"minimum=0"`
	// Maximum number of turns, that is, of messages from the agent.
	MaxIterations *int `yaml:"max_iterations" jsonschema:"minimum=0"`
	// Tools that the agent must use, by their exact names.
	RequiredTools []string `yaml:"required_tools"`
	// Tools that the agent must not use, by their exact names.
	ForbiddenTools []string `yaml:"forbidden_tools"`
}

func checkBehavior(c *eval.Check, o *BehaviorOptions) {
	// A limit of zero tokens or no time makes no sense: other versions use 0 for no limit.
	if o.MaxTokens != nil && *o.MaxTokens == 0 {
		c.Warnf(decode.At("max_tokens"), decode.CodeNoEffect, "max_tokens: 0 means no limit")
	}
	if o.MaxDurationMS != nil && *o.MaxDurationMS == 0 {
		c.Warnf(decode.At("max_duration_ms"), decode.CodeNoEffect, "max_duration_ms: 0 means no limit")
	}
	if o.MaxToolCalls != nil && *o.MaxToolCalls == 0 {
		c.Warnf(decode.At("max_tool_calls"), decode.CodeOtherMeaning,
			"max_tool_calls: 0 allows no tool calls; in microsoft/waza it means no limit; remove it to allow any number")
	}
	checkNames(c, "required_tools", o.RequiredTools)
	checkNames(c, "forbidden_tools", o.ForbiddenTools)
	for i, tool := range o.ForbiddenTools {
		if slices.Contains(o.RequiredTools, tool) {
			c.Errorf(decode.At("forbidden_tools", i), decode.CodeInvalidValue, "%q is both required and forbidden", tool)
		}
	}
	if len(o.checks()) == 0 {
		c.Errorf(decode.At(), decode.CodeChecksNothing,
			"nothing to check: give max_tool_calls, max_tokens, max_duration_ms, max_errors, max_cost_usd, max_iterations, required_tools or forbidden_tools")
	}
}

// checkNames reports empty names and names that look like patterns.
func checkNames(c *eval.Check, key string, names []string) {
	for i, name := range names {
		switch {
		case strings.TrimSpace(name) == "":
			c.Errorf(decode.At(key, i), decode.CodeInvalidValue, "%s[%d] is empty", key, i)
		case strings.Contains(name, "*"):
			c.Warnf(decode.At(key, i), decode.CodeInvalidValue,
				"%s[%d]: %q must be an exact name, not a pattern; tool_constraint accepts patterns of tools", key, i,
				name)
		}
	}
}

// NewBehavior returns a grader with the given options. The options must have passed the check of
// [Behavior]. The Env can be nil.
func NewBehavior(o *BehaviorOptions, _ *grader.Env) (grader.Grader, error) {
	return &behaviorGrader{
		checks: o.checks(), tools: slices.Concat(o.RequiredTools, o.ForbiddenTools), counts: o.MaxToolCalls != nil,
	}, nil
}

type behaviorGrader struct {
	checks []behaviorCheck
	tools  []string // named by the checks
	counts bool     // a check limits the number of calls
}

// ReadsAllCalls reports whether a check limits the number of calls.
func (g *behaviorGrader) ReadsAllCalls() bool { return g.counts }

// NamesTool reports whether name is a required or forbidden tool.
func (g *behaviorGrader) NamesTool(_ *grader.Subject, name string) bool {
	return slices.Contains(g.tools, name)
}

// A behaviorCheck is one limit. test returns a complaint if the trial exceeds it.
type behaviorCheck struct {
	label string
	test  func(s *grader.Subject) (complaint string, err error)
	// count adds the check to a list if a cut transcript can affect it; otherwise nil.
	count func(t *grader.Checklist, check, complaint string, cut error)
}

// add runs the check and adds it to t.
func (b *behaviorCheck) add(t *grader.Checklist, s *grader.Subject) error {
	complaint, err := b.test(s)
	switch {
	case err != nil:
		return err
	case b.count != nil:
		b.count(t, b.label, complaint, s.TranscriptCut())
	default:
		t.Add(b.label, complaint)
	}
	return nil
}

var errNoUsage = errors.New("cannot check max_tokens: the executor reported no token usage")

// Empty reports whether the options contain no check.
func (o *BehaviorOptions) Empty() bool { return len(o.checks()) == 0 }

func (o *BehaviorOptions) checks() []behaviorCheck {
	var checks []behaviorCheck
	limit := func(label string, most int64, what string, measure func(*grader.Subject) int64) behaviorCheck {
		return behaviorCheck{label: fmt.Sprintf("%s %d", label, most), test: func(s *grader.Subject) (string, error) {
			if n := measure(s); n > most {
				return fmt.Sprintf("%d %s, more than %s %d", n, what, label, most), nil
			}
			return "", nil
		}}
	}
	counted := func(b behaviorCheck) behaviorCheck {
		b.count = (*grader.Checklist).Absence // the cut part may contain more
		return b
	}
	if o.MaxToolCalls != nil {
		checks = append(checks, counted(limit("max_tool_calls", int64(*o.MaxToolCalls), "tool calls",
			func(s *grader.Subject) int64 { return int64(len(s.ToolCalls)) })))
	}
	if o.MaxIterations != nil {
		checks = append(checks, counted(limit("max_iterations", int64(*o.MaxIterations), "turns",
			func(s *grader.Subject) int64 { return int64(s.Turns()) })))
	}
	if o.MaxErrors != nil {
		checks = append(checks, counted(limit("max_errors", int64(*o.MaxErrors), "errors",
			func(s *grader.Subject) int64 { return int64(len(s.Errors)) })))
	}
	if o.MaxCostUSD != nil {
		checks = append(checks, costCheck(*o.MaxCostUSD))
	}
	if o.MaxDurationMS != nil && *o.MaxDurationMS > 0 {
		timed := limit("max_duration_ms", *o.MaxDurationMS, "ms", func(s *grader.Subject) int64 { return s.Duration.Milliseconds() })
		checks = append(checks, behaviorCheck{label: timed.label, test: func(s *grader.Subject) (string, error) {
			if _, err := s.Took(); err != nil {
				return "", fmt.Errorf("cannot check max_duration_ms: %w", err)
			}
			return timed.test(s)
		}})
	}
	if o.MaxTokens != nil && *o.MaxTokens > 0 {
		checks = append(checks, tokenCheck(*o.MaxTokens))
	}
	return append(checks, toolNameChecks(o.RequiredTools, o.ForbiddenTools)...)
}

var errNoCost = errors.New("cannot check max_cost_usd: the executor reported no cost, and config.prices has none for the model")

func costCheck(most float64) behaviorCheck {
	return behaviorCheck{label: fmt.Sprintf("max_cost_usd %v", most), test: func(s *grader.Subject) (string, error) {
		// A cost of zero means unknown, because every answer costs something.
		if s.Usage == nil || s.Usage.CostUSD == 0 {
			return "", executor.Permanent(errNoCost)
		}
		if cost := s.Usage.CostUSD; cost > most {
			return fmt.Sprintf("$%.6g, more than max_cost_usd %v", cost, most), nil
		}
		return "", nil
	}}
}

func tokenCheck(most int64) behaviorCheck {
	return behaviorCheck{label: fmt.Sprintf("max_tokens %d", most), test: func(s *grader.Subject) (string, error) {
		// A count of zero means unknown, because every answer takes tokens.
		if s.Usage == nil || s.Usage.Total() == 0 {
			return "", executor.Permanent(errNoUsage)
		}
		if n := s.Usage.Total(); n > most {
			return fmt.Sprintf("%d tokens, more than max_tokens %d", n, most), nil
		}
		return "", nil
	}}
}

// toolNameChecks returns one check for each required and each forbidden tool.
func toolNameChecks(required, forbidden []string) []behaviorCheck {
	var checks []behaviorCheck
	for _, tool := range required {
		checks = append(checks, behaviorCheck{label: "required tool " + tool, test: func(s *grader.Subject) (string, error) {
			if s.CountCalls(tool) > 0 {
				return "", nil
			}
			return fmt.Sprintf("required tool %q was not called; called: %s", tool, s.CalledTools()), nil
		}, count: (*grader.Checklist).Presence})
	}
	for _, tool := range forbidden {
		checks = append(checks, behaviorCheck{label: "forbidden tool " + tool, test: func(s *grader.Subject) (string, error) {
			if n := s.CountCalls(tool); n > 0 {
				return fmt.Sprintf("forbidden tool %q was called %s", tool, text.Count(n, "time", "times")), nil
			}
			return "", nil
		}, count: (*grader.Checklist).Absence})
	}
	return checks
}

func (g *behaviorGrader) Grade(_ context.Context, s *grader.Subject) (grader.Score, error) {
	t := grader.NewChecklist(len(g.checks))
	for i := range g.checks {
		if err := g.checks[i].add(&t, s); err != nil {
			return grader.Score{}, err
		}
	}
	return t.Result()
}
