package regrade

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"waza/runner/executor"
	"waza/runner/journal"
	"waza/runner/plan"
	"waza/runner/provider"
	"waza/runner/record"
	"waza/runner/tally"
	"waza/runner/trial"
)

// grading grades the trials of a recorded run, as many at once as the run did.
// Its goroutines are those workers; run waits for them.
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
	halted error // why no more are
	result Grading
	// reworded are the indexes of tasks that were asked something else than today.
	reworded map[int]bool
}

// gradedTask is a task of the run that is still in the suite.
type gradedTask struct {
	*plan.Task
	index   int // in the run
	without int // index of the task's baseline in the run, -1 when there is none
	ref     record.TaskRef
	order   record.Order
}

// run is what [Amender.Amend] calls.
func (g *grading) run(ctx context.Context, a *Amendment) error {
	g.env = g.plan.Env()
	for _, t := range g.tasks {
		t.order = g.plan.Order(t.Task, g.rec.RunID, t.index+1)
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

// criteria are those of the suite; tasks that it has no more keep theirs.
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
		g.tell()
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

// halt lets no more trials be graded; the first reason counts.
func (g *grading) halt(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.halted == nil {
		g.halted = err
	}
}

func (g *grading) tell() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.done++
	if g.options.Progress != nil {
		g.options.Progress(g.done, g.total)
	}
}

// Gradable reports whether the executor ended normally: then all graders had
// their turn, or the first at least. One whose agent said that it cannot do the task
// left nothing to grade.
func Gradable(res *record.Trial) bool {
	switch res.Verdict {
	case record.Failed:
		destroyed := res.Workspace != nil && res.Workspace.Destroyed != ""
		return len(res.Graders) > 0 || res.Error == "" || destroyed
	case record.Passed, record.NeedsReview:
		return true
	}
	return len(res.Graders) > 0
}

// trial grades one trial, and records what has changed. An error ends the
// grading; the trial stays as it was then.
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
	a := g.grade(ctx, t, old)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	// A canned reply only tries a suite out, which needs no judge.
	if why := executor.AsStop(a.Cause); why != nil && !t.Setup.Can().Canned {
		if !why.Orderly {
			return stopped(why)
		}
		g.halt(stopped(why))
		return nil
	}
	return g.record(t, old, a)
}

// grade lets today's graders score a trial.
func (g *grading) grade(ctx context.Context, t *gradedTask, old *record.Trial) *trial.Attempt {
	o := t.order
	o.Num = old.TrialNum
	again := &trial.Recorded{Order: &o, Env: g.env, Before: g.before(t, old), Blobs: g.blobs, Dir: g.a.dir}
	g.compareAsked(t, old, again.Prompt(old, func(error) {}))
	baseline, err := g.compareWith(t, old.TrialNum)
	if err != nil {
		a := &trial.Attempt{Attempt: &record.Attempt{Graders: old.Graders}}
		a.Fail(ctx, executor.Permanent(err))
		return a
	}
	o.Baseline = baseline
	a, left := again.Grade(ctx, old)
	if left != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.warn("task %s, trial %d: workspace not removed: %v", t.ID, old.TrialNum, left)
	}
	return a
}

// compareAsked notes a task whose prompt is another than it was: its graders may
// expect what nobody asked for. So it is when a row is put into a dataset whose
// rows have no ids.
func (g *grading) compareAsked(t *gradedTask, old *record.Trial, prompt string) {
	if g.plan.Pool.Redactor().Text(prompt) == old.Prompt || strings.Contains(old.Prompt, provider.Redacted) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reworded == nil {
		g.reworded = map[int]bool{}
	}
	g.reworded[t.index] = true
}

// before is what graders made of a trial in the past. Results that an amendment
// replaced are among them, for an edit that is undone makes them those of today:
// what a person said is not lost with it, nor what a judge did.
func (g *grading) before(t *gradedTask, old *record.Trial) [][]record.Grade {
	earlier, err := g.a.earlierGrades(t.index, old.TrialNum)
	if err != nil { // they are of use, and not needed
		g.mu.Lock()
		g.warn("task %s, trial %d: earlier results cannot be read: %v", t.ID, old.TrialNum, err)
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

// compareWith is what judges compare a trial with, as it was recorded; nil when
// the task asks for no baseline.
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
		return &record.Baseline{Missing: "the trial without skills was not recorded"}, nil
	}
	return trial.BaselineOf(res), nil
}

// record puts a trial in its place, if it is another than it was.
func (g *grading) record(t *gradedTask, old *record.Trial, a *trial.Attempt) error {
	res := *old
	res.Verdict, res.Score, res.Error, res.Graders, res.Tools = a.Verdict, a.Score, a.Error, a.Graders, a.Tools
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

// sameGrades compares what would be recorded of the graders of a trial, but for
// how long they took.
func sameGrades(a, b *record.Trial, secrets *provider.Redactor) bool {
	timeless := func(t *record.Trial) any {
		graders := slices.Clone(t.Graders)
		for i := range graders {
			graders[i].DurationMS = 0
		}
		// As it would be read: details are of any type until they are recorded.
		data, err := json.Marshal([]any{t.Verdict, t.Score, t.Error, graders, t.Tools})
		var plain any
		if err != nil || json.Unmarshal(secrets.JSON(data), &plain) != nil {
			return t
		}
		return plain
	}
	return reflect.DeepEqual(timeless(a), timeless(b))
}

// maxFeedback bounds what a change tells of a trial.
const maxFeedback = 2 << 10

// feedback says why a trial did not pass.
func feedback(t *record.Trial, secrets *provider.Redactor) string {
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
	return clip(secrets.Text(text), maxFeedback) // in this order: half a key is no key
}

// clip shortens text to at most n bytes and says so.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + fmt.Sprintf("\n[%d bytes beyond the limit of %d were dropped]", len(text)-n, n)
}
