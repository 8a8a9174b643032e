package behavior

import (
	"context"
	"fmt"
	"slices"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/grader"
)

// ActionSequence compares the order of tool calls with the expected order.
var ActionSequence = grader.KindOf(eval.Kind{
	Name:    "action_sequence",
	Summary: "Compares the called tools with the expected tools. The score is the F1 of the overlap; the mode decides what passes.",
	Options: func() any { return &ActionSequenceOptions{MatchingMode: modeInOrder} },
}, checkActionSequence, newActionSequence)

// The modes of comparing sequences.
const (
	modeExact    = "exact"
	modeInOrder  = "in_order"
	modeAnyOrder = "any_order"
)

// sequenceModes maps the accepted spellings of a mode to the mode.
var sequenceModes = map[string]string{
	"exact_match": modeExact, "exact": modeExact,
	"in_order_match": modeInOrder, "in_order": modeInOrder,
	"any_order_match": modeAnyOrder, "any_order": modeAnyOrder,
	"": modeInOrder,
}

// ActionSequenceOptions holds the options of the action_sequence grader.
type ActionSequenceOptions struct {
	// Names of the tools that the agent should call.
	ExpectedActions []string `yaml:"expected_actions"`
	// Condition of passing: exact_match (exactly these calls, in this order), in_order_match (these calls
	// in this order, with others between them allowed) or any_order_match (each tool at least as
	// often as it is listed).
	MatchingMode string `yaml:"matching_mode" jsonschema:"enum=exact_match,enum=in_order_match,enum=any_order_match,enum=exact,enum=in_order,enum=any_order"`
}

func checkActionSequence(c *eval.Check, o *ActionSequenceOptions) {
	checkNames(c, "expected_actions", o.ExpectedActions)
	if len(o.ExpectedActions) == 0 {
		c.Errorf(decode.At(), decode.CodeChecksNothing, "nothing to check: give expected_actions")
	}
}

func newActionSequence(o *ActionSequenceOptions, _ *grader.Env) (grader.Grader, error) {
	mode, ok := sequenceModes[o.MatchingMode]
	if !ok {
		return nil, fmt.Errorf("unknown matching_mode %q", o.MatchingMode)
	}
	return &sequenceGrader{expected: o.ExpectedActions, mode: mode, noun: "tools"}, nil
}

type sequenceGrader struct {
	expected []string
	mode     string
	noun     string
}

// NamesTool reports whether name is an expected tool.
func (g *sequenceGrader) NamesTool(_ *grader.Subject, name string) bool {
	return slices.Contains(g.expected, name)
}

// ReadsAllCalls returns true, because other calls lower the score.
func (g *sequenceGrader) ReadsAllCalls() bool { return true }

func (g *sequenceGrader) Grade(_ context.Context, s *grader.Subject) (grader.Score, error) {
	if err := s.TranscriptCut(); err != nil { // the score needs all calls
		return grader.Score{}, err
	}
	return g.compare(s.ToolNames()), nil
}

func (g *sequenceGrader) compare(actual []string) grader.Score {
	o := newOverlap(g.expected, actual)
	score := grader.Score{Score: o.F1, Details: o}
	switch g.mode {
	case modeExact:
		score.Passed = slices.Equal(g.expected, actual)
	case modeInOrder:
		score.Passed = isSubsequence(g.expected, actual)
	case modeAnyOrder:
		score.Passed = len(o.missing) == 0
	}
	if !score.Passed {
		score.Feedback = g.feedback(o)
	}
	return score
}

func (g *sequenceGrader) feedback(o overlap) string {
	why := "not in the expected order"
	switch {
	case len(o.missing) > 0:
		why = "missing: " + grader.ListNames(o.missing)
	case len(o.extra) > 0 && g.mode == modeExact:
		why = "not expected: " + grader.ListNames(o.extra)
	}
	return fmt.Sprintf("%s %s\nexpected (%s): %s\nactual: %s", g.noun, why, g.mode, sequence(o.Expected), sequence(o.Actual))
}

// sequence formats a list with its order and repetitions.
func sequence(names []string) string {
	if len(names) == 0 {
		return "(none)"
	}
	text := names[0]
	for _, n := range names[1:] {
		if len(text) > 3*grader.ExcerptBytes {
			return text + " → …"
		}
		text += " → " + n
	}
	return text
}
