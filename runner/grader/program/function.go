package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/grader/assertion"
)

func checkFunction(c *eval.Check, o *CodeOptions) {
	if len(o.Assertions) > 0 {
		c.Errorf(decode.At("assertions"), decode.CodeInvalidValue, "assertions and function exclude each other")
	}
	if fault := assertion.CheckCall(o.Function); fault != nil {
		c.Errorf(decode.At("function"), decode.CodeBadAssertion, "function: %s", fault)
	}
}

func newFunction(o *CodeOptions, env *grader.Env) (grader.Grader, error) {
	if fault := assertion.CheckCall(o.Function); fault != nil {
		return nil, fmt.Errorf("function: %w", fault)
	}
	return &functionGrader{body: o.Function, threshold: o.Threshold, env: env}, nil
}

// A functionGrader scores trials with a JavaScript function. It is safe for concurrent use.
type functionGrader struct {
	body      string
	threshold *float64
	env       *grader.Env
}

func (g *functionGrader) Grade(ctx context.Context, s *grader.Subject) (grader.Score, error) {
	value, complaint, err := g.env.Call(ctx, s, g.body)
	switch unavailable := (*assertion.UnavailableError)(nil); {
	case errors.As(err, &unavailable):
		return grader.Score{}, executor.Permanent(err)
	case err != nil:
		return grader.Score{}, err
	case complaint != "":
		return grader.Score{Undecided: true, Feedback: complaint + "\noutput: " + grader.Excerpt(s.Output)}, nil
	}
	score := g.score(value)
	if !score.Passed && score.Feedback == "" {
		score.Feedback = "the function returned " + text.Clip(string(value), grader.ExcerptBytes) + "\noutput: " + grader.Excerpt(s.Output)
	}
	return score, nil
}

// score returns the score that the result of the function means.
func (g *functionGrader) score(value json.RawMessage) grader.Score {
	var result any
	if err := json.Unmarshal(value, &result); err != nil {
		return grader.Score{Undecided: true, Feedback: err.Error()}
	}
	switch v := result.(type) {
	case bool:
		if v {
			return grader.Score{Score: 1, Passed: true}
		}
		return grader.Score{}
	case float64:
		least := g.threshold
		passed := v > 0
		if least != nil {
			passed = v >= *least
		}
		return grader.Score{Score: within(v), Passed: passed}
	case map[string]any:
		passed, hasPass := v["pass"].(bool)
		score, hasScore := v["score"].(float64)
		reason, hasReason := v["reason"].(string)
		if hasPass && hasScore && hasReason {
			return grader.Score{Score: within(score), Passed: passed, Feedback: strings.TrimSpace(reason)}
		}
	}
	return grader.Score{Undecided: true, Feedback: "the function must return true, false, a number, or an object with pass, score and reason; it returned " +
		text.Clip(string(value), grader.ExcerptBytes)}
}

// within returns a number as a score.
func within(v float64) float64 { return math.Min(1, math.Max(0, v)) }
