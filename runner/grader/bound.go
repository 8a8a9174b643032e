package grader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"strings"
	"time"

	"waza/eval"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/internal/given"
	"waza/runner/record"
)

// A Bound is a grader ready for use, with the name and weight that the suite gives it. It is
// safe for concurrent use.
type Bound struct {
	Name   string
	Type   string
	Weight float64 // more than 0
	// Turn is the number of the prompt whose turn is graded; 0 for the whole trial.
	Turn int
	// SkillsOnly reports whether the grader is left out of the baseline.
	SkillsOnly bool
	negate     bool
	optional   bool
	needsSteps bool
	group      *record.GradeGroup // nil for a grader in no group
	grader     Grader
	options    any      // of the suite; nil if the grader has none
	planned    *Planned // nil if the grader names no files
	transform  string   // of the suite; empty for none
	env        *Env     // for transform
}

// rounding is the most that sums of floats may lie beyond 0 or 1.
const rounding = 1e-9

// NewBound returns g with a name and a weight. The default of name is typ. A weight that is not
// positive means 1.
func NewBound(name, typ string, weight float64, g Grader) *Bound {
	if !(weight > 0) || math.IsInf(weight, 0) {
		weight = 1
	}
	return &Bound{Name: cmp.Or(name, typ), Type: typ, Weight: weight, SkillsOnly: skillsOnly(g), grader: g}
}

// NewBoundAs returns g as the grader that spec describes, whose canonical type is typ.
func NewBoundAs(spec *eval.Grader, typ string, g Grader) *Bound {
	b := NewBound(spec.Name, typ, spec.Weight, g)
	b.SkillsOnly, b.Turn, b.negate, b.optional = IsSkillsOnly(spec), spec.Turn, spec.Negate, spec.Optional
	b.needsSteps = spec.NeedsSteps
	if in := spec.Group; in != nil {
		b.group = &record.GradeGroup{Name: in.Name, Weight: in.Weight, Threshold: in.Threshold, Aggregate: in.Aggregate}
		b.optional = b.optional || in.Optional
	}
	return b
}

// Grade scores one trial. An error means that the grader could not do its work; the returned
// grade contains it, too. Grade never panics: it returns a panic of the grader as an error.
func (b *Bound) Grade(ctx context.Context, s *Subject) (record.Grade, error) {
	start, whole := time.Now(), s
	if b.Turn > 0 {
		part, err := s.AtTurn(b.Turn)
		if part == nil {
			return b.withoutTurn(s, err)
		}
		s = part
	}
	subject, names := b.translated(s)
	score, err := b.grade(ctx, subject)
	r := b.result()
	r.Hash, r.Usage, r.DurationMS = b.hash(whole), score.Usage, time.Since(start).Milliseconds()
	if err != nil {
		r.Error = strings.ToValidUTF8(err.Error(), "\uFFFD")
		return r, err
	}
	r.Score = score.Score + 0 // -0 is 0
	r.Passed = score.Passed
	r.Feedback = strings.ToValidUTF8(score.Feedback, "\uFFFD")
	r.Details = score.Details
	r.NeedsReview = score.NeedsReview
	r.Tools = score.Tools
	r.ToolNames = names
	if len(subject.ToolCalls) > 0 && s.Destroyed == "" {
		b.noteSelfReported(&r, subject)
	}
	if b.planned != nil {
		b.noteChanges(&r, s, score.Compared)
	}
	return r, nil
}

// result returns an empty result of the grader.
func (b *Bound) result() record.Grade {
	return record.Grade{
		Name: b.Name, Type: b.Type, Weight: b.Weight, SkillsOnly: b.SkillsOnly,
		Negated: b.negate, Optional: b.optional, Group: b.group,
	}
}

// withoutTurn returns the result for a trial in which the turn did not happen or, with an error, may
// have happened.
func (b *Bound) withoutTurn(s *Subject, err error) (record.Grade, error) {
	r := b.result()
	if err != nil {
		r.Error = err.Error()
		return r, err
	}
	r.Feedback = fmt.Sprintf("turn %d did not happen: the agent got %s", b.Turn, text.Count(len(s.turnStarts()), "prompt", "prompts"))
	return r, nil
}

// noteChanges adds the files of the grader that changed during the run to its result. compared
// reports whether the grader found none.
func (b *Bound) noteChanges(r *record.Grade, s *Subject, compared bool) {
	if dir := b.planned.Unread(b.options, s.Task); dir != "" {
		r.Unchecked = shownPath(s.Suite, dir)
	}
	if compared {
		return
	}
	changed := b.planned.Compare(b.options, s.Task).Changed
	if len(changed) == 0 {
		return
	}
	for _, c := range changed {
		r.ChangedFiles = append(r.ChangedFiles, shownPath(s.Suite, c.Path))
	}
	r.Feedback = strings.TrimPrefix(r.Feedback+"\n"+changedNote(s.Suite, changed), "\n")
}

// ExpectsCalls is implemented by graders, or by their options, that give trials tool scores.
type ExpectsCalls interface {
	// WithoutCalls returns the scores of a trial that made no call, or nil when the grader
	// expects no calls.
	WithoutCalls() *record.TrialTools
}

// WithoutCalls returns the tool scores of a trial that made no call, or nil when the grader
// gives no tool scores.
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
	if b.needsSteps && s.Capabilities.Stepless && len(s.ToolCalls)+len(s.Skills) == 0 {
		return Score{}, executor.Permanent(errNoSteps)
	}
	s, complaint, err := b.transformed(ctx, s)
	if err != nil || complaint != "" {
		return Score{Undecided: true, Feedback: complaint}, err
	}
	score, err = b.grader.Grade(ctx, s)
	if err == nil {
		if near := min(1, max(0, score.Score)); math.Abs(near-score.Score) < rounding {
			score.Score = near
		}
		err = given.Check(score.Score)
	}
	if b.negate && err == nil && !score.NeedsReview && !score.Undecided {
		score.negate()
	}
	return score, err
}

var errNoSteps = errors.New("cannot check the steps of the agent: the executor reports only answers; run an agent with --agent NAME")

// negate turns the judgement into its opposite.
func (s *Score) negate() {
	s.Score, s.Passed = 1-s.Score, !s.Passed
	if s.Passed {
		s.Feedback = ""
	} else {
		s.Feedback = strings.TrimSuffix("the grader passed, but it is negated\n"+s.Feedback, "\n")
	}
}
