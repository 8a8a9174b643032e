package runner

import (
	"fmt"
	"slices"

	"waza/runner/executor"
	"waza/runner/grader/person"
	"waza/runner/internal/cache"
	"waza/runner/record"
	"waza/runner/trial"
	"waza/runner/workspace"
)

// reuseTrial returns a reused trial as this run records it. The record is complete, so that it
// does not depend on the earlier run.
func (s *scheduler) reuseTrial(t turn, e *cache.Hit) *record.Trial {
	r := s.run
	rec := e.Record()
	old, err := rec.Trial()
	if err != nil {
		return t.notStarted(record.Errored, fmt.Sprintf("cannot reuse the trial of run %s: %v; run without the cache", rec.From.ID, err))
	}
	res := *old
	res.TaskID, res.Hash, res.Cached = t.ID, t.TrialHash(t.trial), &record.CachedFrom{RunID: rec.Origin, Spent: old.Ledger()}
	if e.AsIs() {
		res.Graders = person.WithoutDrawn(r.plan.Sided(t.Task, old.Graders))
	} else {
		a := s.gradeAgain(t.taskRun, old, e)
		res.Verdict, res.Score, res.Error, res.Graders, res.Ungraded, res.Tools = a.Verdict, a.Score, a.Error, a.Graders, a.Ungraded, a.Tools
		res.Routing, res.Suspicions = a.Routing, a.Suspicions
		res.Spent = old.Ledger().Plus(&record.Ledger{Judges: a.Judged})
	}
	res.Workspace = workspace.CopySnapshot(res.Workspace, rec.From.Blobs,
		&workspace.Snapshotter{Blobs: r.log.Blobs(), Secrets: r.plan.Pool.Redactor()})
	return &res
}

// gradeAgain grades a trial of an earlier run with the current graders. If graders fail, it
// tries again like other trials in error; that executes no agent.
func (s *scheduler) gradeAgain(t *taskRun, old *record.Trial, e *cache.Hit) *trial.Attempt {
	r := s.run
	o := s.order(turn{t, old.TrialNum})
	o.RunID = e.Record().Origin
	again := &trial.RecordedTrial{Order: o, Env: s.env, Blobs: e.Record().From.Blobs, Dir: r.log.WorkDir()}
	for _, earlier := range e.Records {
		again.Before = slices.Concat(again.Before, earlier.Grades())
	}
	errs := r.plan.Config.RetryErrors
	var judged *record.Usage // of all tries
	for n := 1; ; n++ {
		a, left := again.Grade(r.ctx, old)
		judged = record.AddUsage(judged, a.Judged)
		a.Judged = judged
		if left != nil {
			r.logTask(t, "warning", "cannot remove workspace: %v", left)
		}
		if why := executor.AsStop(a.Cause); why != nil {
			r.halt(why)
			if why.Orderly {
				a.Verdict = record.Cancelled
			}
			return a
		}
		if a.Verdict != record.Errored || n > errs || executor.IsPermanent(a.Cause) {
			return a
		}
		r.logTask(t, "warning", "task %s, trial %d: %s; grading it again", t.ID, old.TrialNum, a.Error)
		s.env.Pause(r.ctx, n)
		if why := s.env.Ending(r.ctx); why != nil {
			a.Score, a.Verdict, a.Error = nil, record.Cancelled, why.Error()
			return a
		}
	}
}
