package regrade

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/grader/person"
	"waza/runner/internal/secrets"
	"waza/runner/journal"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/tally"
	"waza/runner/trial"
)

// A grading grades the trials of a recorded run, as many at once as the run executed. Its
// goroutines are the workers; run waits for them.
type grading struct {
	plan    *plan.Plan
	env     *trial.Env // set by run
	rec     *record.Run
	options GradeOptions
	tasks   []*gradedTask
	total   int // trials of tasks

	a      *Amendment // set by run
	blobs  *journal.BlobReader
	cancel context.CancelCauseFunc

	mu     sync.Mutex // guards the fields below
	task   int        // the next trial to grade
	num    int
	done   int
	halted error // why no more trials are graded
	result Grading
	// reworded holds the indexes of tasks whose prompt changed since the run.
	reworded map[int]bool
}

// A gradedTask is a task of the run that is still in the suite.
type gradedTask struct {
	*plan.Task
	index   int // in the run
	without int // index of the task's baseline in the run, -1 if it does not exist
	ref     record.TaskRef
	order   record.Order
}

// run grades all trials; [Amender.Amend] calls it.
func (g *grading) run(ctx context.Context, a *Amendment) error {
	g.env = g.plan.Env()
	g.env.Dir = a.dir
	defer g.env.Close()
	for _, t := range g.tasks {
		t.order = g.plan.Order(t.Task, g.rec.RunID, t.index+1)
		t.order.Repos = t.ref.Repos // the repositories of the run, whatever their names refer to today
		if _, err := g.env.Bind(&t.order); err != nil {
			return err
		}
	}
	var err error
	if g.blobs, err = a.run.Blobs(); err != nil {
		return err
	}
	defer g.blobs.Close()
	g.a = a
	a.Redact(g.plan.Pool.Redactor())
	a.SetCriteria(g.criteria(a.criteria))
	ctx, g.cancel = context.WithCancelCause(ctx)
	defer g.cancel(nil)
	var workers sync.WaitGroup
	for range min(max(1, g.plan.Config.ActualWorkers), g.total) {
		workers.Go(func() { g.work(ctx) })
	}
	workers.Wait()
	if g.halted != nil {
		return g.halted
	}
	return context.Cause(ctx)
}

// criteria returns the criteria of the suite; tasks that it no longer has keep theirs.
func (g *grading) criteria(before record.Criteria) record.Criteria {
	c := record.Criteria{Metrics: plan.MetricsOf(g.plan.Suite), Thresholds: slices.Clone(before.Thresholds)}
	for _, t := range g.tasks {
		c.Thresholds[t.index] = t.Threshold
	}
	return c
}

func (g *grading) work(ctx context.Context) {
	for ctx.Err() == nil {
		t, num := g.claim()
		if t == nil {
			return
		}
		if err := g.trial(ctx, t, num); err != nil {
			g.halt(err)
			g.cancel(err)
			return
		}
		g.reportProgress()
	}
}

func (g *grading) claim() (*gradedTask, int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.halted == nil && g.task < len(g.tasks) {
		t := g.tasks[g.task]
		if g.num < t.ref.Trials {
			g.num++
			return t, t.ref.First + g.num - 1
		}
		g.task, g.num = g.task+1, 0
	}
	return nil, 0
}

// halt stops the grading of further trials; the first reason counts.
func (g *grading) halt(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.halted = cmp.Or(g.halted, err)
}

func (g *grading) reportProgress() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.done++
	if g.options.Progress != nil {
		g.options.Progress(g.done, g.total)
	}
}

// Gradable reports whether the executor ended normally, so that all graders, or at least the
// first, were called. It returns false for a trial whose agent reported that it cannot do the
// task, because nothing is left to grade.
func Gradable(res *record.Trial) bool {
	switch res.Verdict {
	case record.Failed:
		destroyed := res.Workspace != nil && res.Workspace.Destroyed != ""
		return record.Finished(res.Graders) || res.Error == "" || destroyed
	case record.Passed, record.NeedsReview:
		return true
	}
	return record.Finished(res.Graders)
}

// trial grades one trial and records its changes. An error ends the grading; the trial stays
// unchanged then.
func (g *grading) trial(ctx context.Context, t *gradedTask, num int) error {
	old, err := g.a.Trial(t.index, num)
	if err != nil {
		return err
	}
	if old == nil || !Gradable(old) {
		g.mu.Lock()
		g.result.Kept++
		g.mu.Unlock()
		return nil
	}
	if changed := old.ChangedFiles(); changed != nil { // by the agent, perhaps: today's files prove nothing
		g.mu.Lock()
		defer g.mu.Unlock()
		g.result.Kept++
		g.warn("task %s, trial %d: not graded because grader %s changed during the run: %s; run it again",
			t.ID, num, text.Plural(len(changed), "file", "files"), text.Names(changed))
		return nil
	}
	lacks, err := g.lacksSecret(old)
	if err != nil {
		return err
	}
	if lacks {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.result.Kept++
		g.warn("task %s, trial %d: not graded because its record has %s in place of a secret, which graders could look for; run it again",
			t.ID, num, secrets.Redacted)
		return nil
	}
	a := g.grade(ctx, t, old)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	// A canned reply only tries out a suite, which does not need a judge.
	if why := executor.AsStop(a.Cause); why != nil && !t.Setup.Can().Canned {
		if !why.Orderly {
			return stopped(why)
		}
		g.halt(stopped(why))
		return nil
	}
	return g.record(t, old, a)
}

// lacksSecret reports whether a trial was recorded without a secret that can be in its graders, because it is the value of
// a parameter of the suite.
func (g *grading) lacksSecret(old *record.Trial) (bool, error) {
	if len(g.plan.Suite.Secrets()) == 0 {
		return false, nil
	}
	encoded, err := json.Marshal(old)
	return bytes.Contains(encoded, []byte(secrets.Redacted)), err
}

// grade scores a trial with the present graders.
func (g *grading) grade(ctx context.Context, t *gradedTask, old *record.Trial) *trial.Attempt {
	if t.Task.Blocked != "" {
		return g.blocked(ctx, t, old)
	}
	o := t.order
	o.Num = old.TrialNum
	again := &trial.RecordedTrial{Order: &o, Env: g.env, Before: g.before(t, old), Blobs: g.blobs, Dir: g.a.dir}
	g.compareAsked(t, old, again.Prompt(old, func(error) {}))
	baseline, err := g.compareWith(t, old.TrialNum)
	if err != nil {
		a := &trial.Attempt{Attempt: &record.Attempt{Graders: old.Graders}, Suspicions: old.Suspicions}
		a.Fail(ctx, executor.Permanent(err))
		return a
	}
	o.Baseline = baseline
	a, left := again.Grade(ctx, old)
	a.Graders = person.WithDrawn(a.Graders, old.Graders)
	person.Compare(a.Graders)
	if left != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.warn("task %s, trial %d: workspace not removed: %v", t.ID, old.TrialNum, left)
	}
	return a
}

// blocked returns the result of a trial whose task cannot be decided: an error, as in a run. The grades that the run
// recorded stay, so that they count again when the suite is repaired; those of an imported file are not by this suite.
func (g *grading) blocked(ctx context.Context, t *gradedTask, old *record.Trial) *trial.Attempt {
	a := &trial.Attempt{Attempt: new(record.Attempt), Suspicions: old.Suspicions}
	if g.rec.Imported == nil {
		a.Graders = old.Graders
	}
	a.Fail(ctx, executor.Permanent(errors.New(t.Task.Blocked)))
	return a
}

// compareAsked records whether a task's prompt changed since the run: its graders may then
// expect what nobody asked for. This happens, for example, when a row is inserted into a dataset
// without ids.
func (g *grading) compareAsked(t *gradedTask, old *record.Trial, prompt string) {
	if g.rec.Imported != nil && old.Prompt == "" { // the file did not contain it
		return
	}
	if g.plan.Pool.Redactor().Text(prompt) == old.Prompt || strings.Contains(old.Prompt, secrets.Redacted) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reworded == nil {
		g.reworded = map[int]bool{}
	}
	g.reworded[t.index] = true
}

// before returns the past grades of a trial, including grades that amendments replaced. If an
// edit of the suite is undone, they apply again: neither a person's scores nor a judge's answers
// are lost.
func (g *grading) before(t *gradedTask, old *record.Trial) [][]record.Grade {
	earlier, err := g.a.earlierGrades(t.index, old.TrialNum)
	if err != nil { // they are useful, but not required
		g.mu.Lock()
		g.warn("task %s, trial %d: cannot read earlier results: %v", t.ID, old.TrialNum, err)
		g.mu.Unlock()
	}
	list := append([][]record.Grade{old.Graders}, earlier...)
	if g.options.Rejudge {
		for i := range list {
			list[i] = slices.DeleteFunc(slices.Clone(list[i]), func(r record.Grade) bool { return !r.AsksPerson() })
		}
	}
	return list
}

// compareWith returns the recorded baseline for judges to compare a trial with; nil if the task
// requires no baseline.
func (g *grading) compareWith(t *gradedTask, num int) (*record.Baseline, error) {
	switch {
	case !t.Compares:
		return nil, nil
	case t.without < 0 && t.Setup.Baselines != "":
		return &record.Baseline{Missing: "the baseline is " + t.Setup.Baselines}, nil
	case t.without < 0:
		return &record.Baseline{Missing: "the run was recorded without a baseline"}, nil
	}
	res, err := g.a.Trial(t.without, num)
	switch {
	case err != nil:
		return nil, err
	case res == nil:
		return &record.Baseline{Missing: fmt.Sprintf("the trial %s was not recorded", t.order.Against.Arm())}, nil
	}
	return trial.BaselineOf(res, t.order.Against.Arm()), nil
}

// record replaces a trial if its grades changed.
func (g *grading) record(t *gradedTask, old *record.Trial, a *trial.Attempt) error {
	res := *old
	res.Verdict, res.Score, res.Error, res.Graders, res.Ungraded, res.Tools = a.Verdict, a.Score, a.Error, a.Graders, a.Ungraded, a.Tools
	res.Routing, res.Suspicions = a.Routing, a.Suspicions
	if a.Judged != nil {
		res.Spent = old.Ledger().Plus(&record.Ledger{Judges: a.Judged})
	}
	if a.Judged != nil || !sameGrades(old, &res, g.plan.Pool.Redactor()) {
		if err := g.a.Replace(t.index, old.Verdict, &res); err != nil {
			return err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.result.Graded++
	if old.Verdict == res.Verdict && reflect.DeepEqual(old.Score, res.Score) {
		return nil
	}
	g.result.Changed++
	if len(g.result.Changes) < MaxChanges {
		g.result.Changes = append(g.result.Changes, Change{
			TaskID: t.ID, Trial: res.TrialNum, Was: old.Verdict, Verdict: res.Verdict, Score: res.Score,
			Feedback: feedback(&res, g.plan.Pool.Redactor()), task: t.index,
		})
	}
	return nil
}

// sameGrades reports whether the grades of two trials would be recorded in the same way, except
// for their durations.
func sameGrades(a, b *record.Trial, secrets *secrets.Redactor) bool {
	timeless := func(t *record.Trial) any {
		graders := slices.Clone(t.Graders)
		for i := range graders {
			graders[i].DurationMS = 0
		}
		// Compare encoded values, because details have any type until they are recorded.
		data, err := json.Marshal([]any{t.Verdict, t.Score, t.Error, graders, t.Tools, t.Routing, t.Suspicions})
		var plain any
		if err != nil || json.Unmarshal(secrets.JSON(data), &plain) != nil {
			return t
		}
		return plain
	}
	return reflect.DeepEqual(timeless(a), timeless(b))
}

// maxFeedback is the most bytes of a change's feedback.
const maxFeedback = 2 << 10

// feedback returns the reasons why a trial did not pass.
func feedback(t *record.Trial, secrets *secrets.Redactor) string {
	switch t.Verdict {
	case record.Passed:
		return ""
	case record.NeedsReview:
		return tally.WaitsForPerson
	}
	text := t.Error
	for i := range t.Graders {
		if r := &t.Graders[i]; text == "" && !r.Passed && !r.NeedsReview && !r.Calibrates() {
			text = fmt.Sprintf("%s: %s", r.Name, r.Feedback)
		}
	}
	return clip(secrets.Text(text), maxFeedback) // in this order, because a clipped key would not be recognized
}

// clip shortens text to at most n bytes and adds a note.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return text.Head(s, n) + fmt.Sprintf("\n[%d bytes beyond the limit of %d were dropped]", len(s)-n, n)
}
