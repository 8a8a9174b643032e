package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/grader/behavior"
	"waza/runner/grader/person"
	"waza/runner/record"
	"waza/runner/tally"
)

// Attempt is one attempt at a trial.
type Attempt struct {
	*record.Attempt
	Prompt string
	Speed  *record.Speed
	Took   time.Duration // by the executor, without startup
	// Startup is the time before the agent received the prompt.
	Startup time.Duration
	Left    *record.Snapshot // of the workspace
	// before contains, for a recorded trial, the earlier results of graders, one list per
	// grading, newest first.
	before [][]record.Grade
	Cause  error // why the verdict is error
	// set when the executor returned the attempt to be admitted again
	again *executor.RetryError
	// Judged is the cost of graders that asked models, Replied the cost of the responder.
	Judged, Replied *record.Usage
	// Reached contains the results of checkpoints, which follow those of other graders.
	Reached []record.Grade
	Tools   *record.TrialTools
	// ScoreThreshold is that of the task when graders graded the attempt.
	ScoreThreshold *float64
	// Ungraded are the graders that had nothing to grade.
	Ungraded []record.GraderRef
	// Suspicions are suspicious moves of the agent.
	Suspicions []record.Suspicion
	// EndedEarly means that waza ended the agent because the verdict was decided.
	EndedEarly bool
	// Routing is nil unless clients received the prompts.
	Routing *record.Routing
}

func newAttempt() *Attempt {
	var a struct { // one piece of memory instead of two
		Attempt
		recorded record.Attempt
	}
	a.Attempt.Attempt = &a.recorded
	a.Graders, a.Transcript = []record.Grade{}, []record.Entry{}
	return &a.Attempt
}

// count makes a the counted attempt of a trial.
func (a *Attempt) count(res *record.Trial) {
	res.Verdict, res.Score, res.ScoreThreshold, res.Error = a.Verdict, a.Score, a.ScoreThreshold, a.Error
	res.Prompt, res.Output, res.OutputDropped, res.Usage = a.Prompt, a.Output, a.OutputDropped, a.Usage
	res.Speed, res.ExecutorMS, res.StartupMS, res.Workspace = a.Speed, a.Took.Milliseconds(), a.Startup.Milliseconds(), a.Left
	res.Graders, res.Transcript, res.Tools = a.Graders, a.Transcript, a.Tools
	res.Ungraded, res.Suspicions, res.EndedEarly = a.Ungraded, a.Suspicions, a.EndedEarly
	res.Routing, res.Checkpoints, res.Responder, res.Conditions = a.Routing, a.Checkpoints, a.Responder, a.Conditions
}

// takeOutput keeps the part of an output that is recorded.
func (a *Attempt) takeOutput(out executor.Outcome) {
	a.Output, a.OutputDropped = out.Output, max(0, out.OutputDropped)
	if n := len(out.Output) - executor.MaxOutputBytes; n > 0 {
		a.Output = text.Head(out.Output, executor.MaxOutputBytes)
		a.OutputDropped += int64(n)
	}
}

// gradeTrigger grades a trial of a trigger test that did not end, if what the agent did decides it:
// after a timeout, or after an error if the first tool call decides. Other trials keep their verdict,
// because the agent might have used the skill later.
func (a *Attempt) gradeTrigger(ctx context.Context, w *work) {
	if a.Verdict != record.TimedOut && (a.Verdict != record.Errored || !w.Trigger.FirstTool) {
		return
	}
	subject := w.triggerSubject(a.Transcript)
	if behavior.TriggerDecided(w.Trigger, subject) {
		a.Error, a.Cause = "", nil
		a.grade(ctx, w.graders, subject)
	}
}

// Fail sets the verdict of an attempt that ended with err.
func (a *Attempt) Fail(ctx context.Context, err error) {
	a.Score = nil
	var expansion *expansionError
	var failed *executor.FailedError
	switch why := context.Cause(ctx); {
	case errors.As(why, &expansion):
		a.Verdict, a.Error, a.Cause = record.Errored, why.Error(), executor.Permanent(why)
	case errors.Is(why, errDeadline) || err != nil && errors.Is(err, executor.ErrTimeout):
		if errors.Is(why, errDeadline) {
			err = why
		}
		a.Verdict, a.Score, a.Error = record.TimedOut, new(float64), err.Error()
	case errors.As(why, &failed): // a mock did not expect a call
		a.Verdict, a.Score, a.Error = record.Failed, new(float64), why.Error()
	case why != nil:
		a.Verdict, a.Error = record.Cancelled, why.Error()
	case errors.As(err, &failed):
		a.Verdict, a.Score, a.Error = record.Failed, new(float64), err.Error()
	default:
		a.Verdict, a.Error, a.Cause = record.Errored, err.Error(), err
	}
}

// grade runs every grader on the subject and sets the verdict.
func (a *Attempt) grade(ctx context.Context, graders []*grader.Bound, subject *grader.Subject) {
	defer a.listUngraded(graders)
	defer a.scoreTools(graders)
	a.Graders = make([]record.Grade, 0, len(graders))
	var broken error
	for _, g := range graders {
		res, err := a.recall(ctx, g, subject)
		a.Graders = append(a.Graders, res)
		a.Judged = record.AddUsage(a.Judged, res.Usage)
		if ctx.Err() != nil {
			a.Graders = append(a.Graders, a.Reached...)
			a.Fail(ctx, err)
			return
		}
		if err != nil && broken == nil && !res.Optional {
			broken = fmt.Errorf("grader %q: %w", res.Name, err)
		}
	}
	a.Graders = append(a.Graders, a.Reached...)
	a.ScoreThreshold = subject.Task.ScoreThreshold
	for _, results := range a.before {
		person.KeepReviews(a.Graders, results)
	}
	person.Compare(a.Graders)
	a.Verdict, a.Score, a.Error = tally.VerdictOf(a.Graders, a.ScoreThreshold)
	if subject.Destroyed != "" && a.Verdict == record.Passed { // nothing was to be graded
		a.Verdict, a.Score, a.Error = record.Failed, new(float64), subject.Destroyed
	}
	if broken != nil {
		a.Fail(ctx, broken) // Fail needs the error itself, not only its text
	}
}

// scoreTools sets the tool scores of an attempt, once its verdict is known. They are those of
// the last grader that expects calls; if the task has expected calls, this is their grader. An
// attempt that timed out or was not graded has the scores of an attempt without calls.
func (a *Attempt) scoreTools(graders []*grader.Bound) {
	a.Tools = nil
	if !a.Verdict.Counted() && a.Verdict != record.NeedsReview {
		return
	}
	for i := range slices.Backward(graders) {
		none := graders[i].WithoutCalls()
		if none == nil {
			continue
		}
		if a.Tools = none; a.Verdict != record.TimedOut && i < len(a.Graders) && a.Graders[i].Tools != nil {
			a.Tools = a.Graders[i].Tools
		}
		return
	}
}

// listUngraded lists the graders that gave no score to an attempt that the agent did not finish.
func (a *Attempt) listUngraded(graders []*grader.Bound) {
	a.Ungraded = nil
	if a.Verdict != record.TimedOut && a.Verdict != record.Failed {
		return
	}
	for _, g := range graders {
		gave := func(r record.Grade) bool { return r.AfterTurn == 0 && r.Name == g.Name && r.Type == g.Type }
		if g.Type != record.TypeHumanCalibration && !slices.ContainsFunc(a.Graders, gave) {
			a.Ungraded = append(a.Ungraded, record.GraderRef{Name: g.Name, Type: g.Type})
		}
	}
}

// recall runs a grader on the subject, unless an earlier result is still valid. Each earlier
// result is used once.
func (a *Attempt) recall(ctx context.Context, g *grader.Bound, subject *grader.Subject) (record.Grade, error) {
	for n, results := range a.before {
		// In older gradings, a result with another name may be the same result again.
		if res, i := g.Recall(subject, results); i >= 0 && (n == 0 || results[i].Name == res.Name) {
			a.before[n] = slices.Delete(slices.Clone(results), i, i+1)
			return res, nil
		}
	}
	return g.Grade(ctx, subject)
}
