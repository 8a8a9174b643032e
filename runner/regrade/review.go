package regrade

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"waza/eval/decode"
	"waza/runner/grader/person"
	"waza/runner/internal/given"
	"waza/runner/internal/secrets"
	"waza/runner/pause"
	"waza/runner/record"
	"waza/runner/tally"
)

// A Review is a person's score of one trial.
type Review struct {
	TaskID string
	Trial  int // from 1
	// Grader is the name of the grader that asks; it can be empty if only one does.
	Grader string
	// Score is in [0, 1]. The grader decides which score passes.
	Score   float64
	Comment string
	// Reviewer names the person who gives the score; can be empty.
	Reviewer string
}

// Reviewed is the state of a trial after a review.
type Reviewed struct {
	RunID  string `json:"runId"`
	TaskID string `json:"taskId"`
	Trial  int    `json:"trial"`
	Grader string `json:"grader"`
	// Verdict and Score are the trial's; Score is nil if it has none.
	Verdict record.Verdict `json:"verdict"`
	Score   *float64       `json:"score"`
	// Pending is the number of scores that the run still waits for.
	Pending int `json:"pending"`
	// Damage describes the damage of the run's record; nil without damage.
	Damage *record.Damage `json:"damage,omitempty"`
}

// A ReviewError means that a review cannot be accepted, and names the faulty part.
type ReviewError struct {
	RunID string
	What  string   // task, trial, grader or score
	Given string   // the given value
	Known []string // valid values; can be empty
	msg   string
}

func (e *ReviewError) Error() string { return e.msg }

// reviewPatience is how long a review waits for others that amend the same run. Another review
// is over in a moment; a regrading can take long.
const reviewPatience = 3 * time.Second

// Review records a person's score of a trial of a run that is over, and updates the verdict of
// the trial and the result of the run. It can be called again: the last score counts, the others
// stay in the journal. If Review returns no error, the score is recorded. The error is
// [record.ErrRunNotFound], a [*ReviewError], a [*record.BusyError], or an error of reading or
// writing the record. Concurrent reviewers, even of several processes, wait for each other for
// some seconds.
func (r *Amender) Review(ctx context.Context, runID string, v Review) (*Reviewed, error) {
	if err := given.Check(v.Score); err != nil {
		return nil, &ReviewError{RunID: runID, What: "score", Given: fmt.Sprint(v.Score), msg: err.Error()}
	}
	var done *Reviewed
	err := r.amendPatiently(ctx, runID, func(_ context.Context, a *Amendment) (err error) {
		a.Redact(environmentSecrets())
		done, err = a.review(v, time.Now().UTC())
		return err
	})
	if err != nil {
		return nil, err
	}
	pending, err := r.Pending(runID)
	if err != nil {
		return done, err
	}
	done.Pending = len(pending)
	h, err := r.Catalog.Run(runID)
	if err == nil {
		done.Damage, err = h.Damage()
	}
	return done, err
}

// environmentSecrets returns the keys in the environment, because people may paste them into a
// comment.
func environmentSecrets() *secrets.Redactor {
	var secrets secrets.Redactor
	secrets.Learn(os.Environ())
	return &secrets
}

// amendPatiently is like Amend, but retries while somebody else amends the run.
func (r *Amender) amendPatiently(ctx context.Context, id string, change func(context.Context, *Amendment) error) error {
	deadline := time.Now().Add(reviewPatience)
	for {
		err := r.Amend(ctx, id, change)
		var busy *record.BusyError
		if !errors.As(err, &busy) || busy.Running || time.Now().After(deadline) {
			return err
		}
		_ = pause.About(ctx, 20*time.Millisecond)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

func (a *Amendment) review(v Review, now time.Time) (*Reviewed, error) {
	task := slices.IndexFunc(a.rec.Tasks, func(t record.TaskRef) bool { return t.ID == v.TaskID })
	if task < 0 {
		return nil, noSuchTask(a.rec, v.TaskID)
	}
	res, err := a.Trial(task, v.Trial)
	if err != nil {
		return nil, err
	}
	g, err := a.reviewable(task, v, res)
	if err != nil {
		return nil, err
	}
	if err := person.SetReview(g, v.Score, v.Comment, v.Reviewer, now); err != nil {
		return nil, &ReviewError{RunID: a.rec.RunID, What: "grader", Given: g.Name, msg: err.Error()}
	}
	person.Compare(res.Graders)
	was := res.Verdict
	if was.Graded() {
		res.Verdict, res.Score, res.Error = tally.VerdictOf(res.Graders, res.ScoreThreshold)
	}
	if err := a.Replace(task, was, res); err != nil {
		return nil, err
	}
	return &Reviewed{RunID: a.rec.RunID, TaskID: v.TaskID, Trial: v.Trial, Grader: g.Name, Verdict: res.Verdict, Score: res.Score}, nil
}

// reviewable returns the grade in the trial res that v is about. res is nil if the trial has not
// ended.
func (a *Amendment) reviewable(task int, v Review, res *record.Trial) (*record.Grade, error) {
	ref := a.rec.Tasks[task]
	fault := &ReviewError{RunID: a.rec.RunID, What: "trial", Given: fmt.Sprint(v.Trial)}
	switch last := ref.First + ref.Trials - 1; {
	case v.Trial < ref.First || v.Trial > last:
		fault.msg = fmt.Sprintf("task %q of run %s has no trial %d; it has %s", v.TaskID, a.rec.RunID, v.Trial, span(ref.First, last))
		return nil, fault
	case res == nil:
		fault.msg = fmt.Sprintf("trial %d of task %q had not ended when run %s did", v.Trial, v.TaskID, a.rec.RunID)
		return nil, fault
	case !record.Finished(res.Graders) && res.Error != "":
		fault.msg = fmt.Sprintf("trial %d of task %q was not graded, so there is nothing to review: %s: %s", v.Trial,
			v.TaskID, res.Verdict, res.Error)
		return nil, fault
	}
	return a.asking(v, res)
}

func span(first, last int) string {
	if first == last {
		return fmt.Sprintf("only trial %d", first)
	}
	return fmt.Sprintf("%d to %d", first, last)
}

// asking returns the grade that asks a person. If several have the same name, it returns the
// first that waits, else the first.
func (a *Amendment) asking(v Review, res *record.Trial) (*record.Grade, error) {
	var names []string
	var found *record.Grade
	for i := range res.Graders {
		g := &res.Graders[i]
		if g.AsksPerson() {
			if !slices.Contains(names, g.Name) {
				names = append(names, g.Name)
			}
			if (v.Grader == "" || v.Grader == g.Name || g.Drawn() && v.Grader == g.Review().Calibrates) && (found == nil || g.NeedsReview && !found.NeedsReview) {
				found = g
			}
		}
	}
	where := fmt.Sprintf("trial %d of task %q", v.Trial, v.TaskID)
	fault := &ReviewError{RunID: a.rec.RunID, What: "grader", Given: v.Grader, Known: names}
	switch {
	case len(names) == 0:
		fault.msg = "no grader asks a person about " + where
	case v.Grader == "" && len(names) > 1:
		fault.msg = fmt.Sprintf("several graders ask a person about %s, name one of them: %s", where, strings.Join(names, ", "))
	case found != nil:
		return found, nil
	default:
		fault.msg = fmt.Sprintf("no grader %q asks a person about %s; graders that do: %s", v.Grader, where, strings.Join(names, ", "))
		for _, g := range res.Graders {
			if g.Name == v.Grader {
				fault.msg = fmt.Sprintf("grader %q has type %s, which does not ask a person; graders of %s that do: %s",
					g.Name, g.Type, where, strings.Join(names, ", "))
			}
		}
	}
	return nil, fault
}

func noSuchTask(rec *record.Run, id string) error {
	e := &ReviewError{RunID: rec.RunID, What: "task", Given: id, msg: fmt.Sprintf("run %s has no task %q", rec.RunID, id)}
	for _, t := range rec.Tasks {
		e.Known = append(e.Known, t.ID)
	}
	if near := decode.Nearest(id, e.Known); near != "" {
		e.msg += fmt.Sprintf(" (did you mean %q?)", near)
	}
	return e
}
