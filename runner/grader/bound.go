package grader

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"strings"
	"time"

	"waza/eval/text"
	"waza/runner/record"
)

// Bound is a grader ready for use, with the name and weight that the suite
// gives it. It is safe for concurrent use.
type Bound struct {
	Name   string
	Type   string
	Weight float64 // more than 0
	// SkillsOnly says that the grader is left out of the baseline.
	SkillsOnly bool
	grader     Grader
}

// NewBound names a grader. An empty name means its type; a weight that is not
// positive means 1.
func NewBound(name, typ string, weight float64, g Grader) *Bound {
	if !(weight > 0) || math.IsInf(weight, 0) {
		weight = 1
	}
	return &Bound{Name: cmp.Or(name, typ), Type: typ, Weight: weight, SkillsOnly: skillsOnly(g), grader: g}
}

// Grade scores one trial. The error means that the grader could not do its work,
// and is in the result too. It never panics: a panic in the grader is an error.
func (b *Bound) Grade(ctx context.Context, s *Subject) (record.Grade, error) {
	start := time.Now()
	score, err := b.grade(ctx, s)
	r := record.Grade{Name: b.Name, Type: b.Type, Weight: b.Weight, SkillsOnly: b.SkillsOnly, Hash: b.hash(s), Usage: score.Usage, DurationMS: time.Since(start).Milliseconds()}
	if err != nil {
		r.Error = strings.ToValidUTF8(err.Error(), "\uFFFD")
		return r, err
	}
	r.Score = min(1, max(0, score.Score))
	r.Passed = score.Passed
	r.Feedback = strings.ToValidUTF8(score.Feedback, "\uFFFD")
	r.Details = score.Details
	r.NeedsReview = score.NeedsReview
	r.Tools = score.Tools
	return r, nil
}

// ExpectsCalls is what the options of a grader implement, or the grader itself, that
// gives trials their tool scores.
type ExpectsCalls interface {
	// WithoutCalls are the scores of a trial that made no call; nil when none is expected.
	WithoutCalls() *record.TrialTools
}

// WithoutCalls are the tool scores of a trial that made no call; nil when the grader
// gives none.
func (b *Bound) WithoutCalls() *record.TrialTools {
	if g, ok := b.grader.(ExpectsCalls); ok {
		return g.WithoutCalls()
	}
	return nil
}

func (b *Bound) grade(ctx context.Context, s *Subject) (score Score, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, text.Clip(string(debug.Stack()), 2000))
		}
	}()
	if err := context.Cause(ctx); err != nil {
		return Score{}, err
	}
	if s.Destroyed != "" {
		return Score{Feedback: s.Destroyed}, nil
	}
	score, err = b.grader.Grade(ctx, s)
	if err == nil && math.IsNaN(score.Score) {
		err = fmt.Errorf("the score is not a number")
	}
	return score, err
}
