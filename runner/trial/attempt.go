package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/grader/behavior"
	"waza/runner/grader/person"
	"waza/runner/record"
	"waza/runner/tally"
)

// Attempt is one try of a trial.
type Attempt struct {
	*record.Attempt
	Prompt string
	Speed  *record.Speed
	Took   time.Duration // by the executor, without startup
	// Startup passed before the agent was asked.
	Startup time.Duration
	Left    *record.Snapshot // of the workspace
	// before is what graders made of it in the past, of a recorded trial, each
	// time it was graded; the newest first.
	before [][]record.Grade
	Cause  error // why the verdict is error
	// again says that the executor sent the attempt back; nil when it did not.
	again *executor.AgainError
	// Judged is what graders spent that asked models.
	Judged *record.Usage
	Tools  *record.TrialTools
}

func newAttempt() *Attempt {
	return &Attempt{Attempt: &record.Attempt{Graders: []record.Grade{}, Transcript: []record.Entry{}}}
}

// count makes a the attempt of a trial that counts.
func (a *Attempt) count(res *record.Trial) {
	res.Verdict, res.Score, res.Error = a.Verdict, a.Score, a.Error
	res.Prompt, res.Output, res.OutputDropped, res.Usage = a.Prompt, a.Output, a.OutputDropped, a.Usage
	res.Speed, res.ExecutorMS, res.StartupMS, res.Workspace = a.Speed, a.Took.Milliseconds(), a.Startup.Milliseconds(), a.Left
	res.Graders, res.Transcript, res.Tools = a.Graders, a.Transcript, a.Tools
}

// takeOutput keeps as much of an output as is recorded.
func (a *Attempt) takeOutput(out executor.Outcome) {
	a.Output, a.OutputDropped = out.Output, max(0, out.OutputDropped)
	if n := len(out.Output) - executor.MaxOutputBytes; n > 0 {
		a.Output = strings.ToValidUTF8(out.Output[:executor.MaxOutputBytes], "")
		a.OutputDropped += int64(n)
	}
}

// gradeTrigger grades a trial of a trigger test whose time was up after the agent
// had used the skill: what was asked is answered then. One that had not yet may
// have come to it, and keeps its verdict.
func (a *Attempt) gradeTrigger(ctx context.Context, w *work) {
	subject := grader.NewSubject(grader.Subject{Suite: w.Suite, Task: w.Task, Transcript: a.Transcript})
	used, err := behavior.ForTrigger(w.Trigger.Skill, true).Grade(ctx, subject)
	if err == nil && used.Passed {
		a.Error = ""
		a.grade(ctx, w.graders, subject)
	}
}

// Fail gives an attempt that was cut short its verdict.
func (a *Attempt) Fail(ctx context.Context, err error) {
	a.Score = nil
	var expansion *expansionError
	var failed *executor.FailedError
	switch why := context.Cause(ctx); {
	case errors.As(why, &expansion):
		a.Verdict, a.Error, a.Cause = record.Errored, why.Error(), executor.Permanent(why)
	case errors.Is(why, errDeadline) || err != nil && errors.Is(err, executor.ErrTimeout):
		a.Verdict, a.Score, a.Error = record.TimedOut, new(float64), "timeout exceeded"
		if errors.Is(err, executor.ErrTimeout) {
			a.Error = err.Error()
		}
	case why != nil:
		a.Verdict, a.Error = record.Cancelled, why.Error()
	case errors.As(err, &failed):
		a.Verdict, a.Score, a.Error = record.Failed, new(float64), err.Error()
	default:
		a.Verdict, a.Error, a.Cause = record.Errored, err.Error(), err
	}
}

// grade lets every grader score the subject and gives the verdict.
func (a *Attempt) grade(ctx context.Context, graders []*grader.Bound, subject *grader.Subject) {
	defer a.scoreTools(graders)
	a.Graders = make([]record.Grade, 0, len(graders))
	var broken error
	for _, g := range graders {
		res, err := a.recall(ctx, g, subject)
		a.Graders = append(a.Graders, res)
		a.Judged = record.AddUsage(a.Judged, res.Usage)
		if ctx.Err() != nil {
			a.Fail(ctx, err)
			return
		}
		if err != nil && broken == nil {
			broken = fmt.Errorf("grader %q: %w", res.Name, err)
		}
	}
	for _, results := range a.before {
		person.KeepReviews(a.Graders, results)
	}
	person.Compare(a.Graders)
	a.Verdict, a.Score, a.Error = tally.VerdictOf(a.Graders)
	if subject.Destroyed != "" && a.Verdict == record.Passed { // nothing was to be graded
		a.Verdict, a.Score, a.Error = record.Failed, new(float64), subject.Destroyed
	}
	if broken != nil {
		a.Fail(ctx, broken) // which knows more of the error than its text
	}
}

// scoreTools gives an attempt its tool scores, once its verdict is known: those of the
// last grader that expects calls, which is that of the task's expected calls if there are
// some. An attempt that timed out or was not graded has those of one that made no call.
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

// recall lets a grader score the subject, unless there is a result of the past
// that need not be asked for again. Each is taken over once.
func (a *Attempt) recall(ctx context.Context, g *grader.Bound, subject *grader.Subject) (record.Grade, error) {
	for n, results := range a.before {
		// Beyond the newest, what went by another name may be the same result once more.
		if res, i := g.Recall(subject, results); i >= 0 && (n == 0 || results[i].Name == res.Name) {
			a.before[n] = slices.Delete(slices.Clone(results), i, i+1)
			return res, nil
		}
	}
	return g.Grade(ctx, subject)
}
