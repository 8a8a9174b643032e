package runner

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/journal"
)

// takeOver is a trial that an earlier run did, as this run records it: whole, so
// that it needs the other no more.
func (s *scheduler) takeOver(t *taskRun, num int, e *earlierTrial) *TrialResult {
	r := s.run
	record := e.record()
	old, err := record.trial()
	if err != nil {
		return &TrialResult{
			TaskID: t.ID, TrialNum: num, Hash: t.trialHash(num), Verdict: Errored, Graders: []grader.Result{}, Transcript: []executor.Entry{},
			Error: fmt.Sprintf("the trial cannot be taken over from run %s any more: %v; run it without the cache", record.from.id, err),
		}
	}
	res := *old
	res.TaskID, res.Hash, res.Cached = t.ID, t.trialHash(num), &CachedFrom{RunID: record.origin, Spent: old.Ledger()}
	if !e.asIs() {
		a := s.gradeAgain(t, old, e)
		res.Verdict, res.Score, res.Error, res.Graders = a.Verdict, a.Score, a.Error, a.Graders
		res.Spent = old.Ledger().plus(&Ledger{Judges: a.judged})
	}
	res.Workspace = res.Workspace.copied(record.from.blobs, &snapshooter{blobs: r.log.Blobs(), secrets: r.plan.pool.Redactor()})
	return &res
}

// gradeAgain lets today's graders score a trial that an earlier run did. One whose
// graders could not do their work is tried again as others in error are: that
// executes nothing.
func (s *scheduler) gradeAgain(t *taskRun, old *TrialResult, e *earlierTrial) *attempt {
	r := s.run
	again := &rescored{
		plan: r.plan, task: t.PlannedTask, graders: t.graders, env: t.env, runID: e.record().origin,
		baseline: s.compareWith(t, old.TrialNum), blobs: e.record().from.blobs,
		path: filepath.Join(r.log.WorkDir(), workspaceName(t.num, t.ID, old.TrialNum, len(old.Attempts)+1)),
	}
	for _, record := range e.records {
		again.before = slices.Concat(again.before, record.grades())
	}
	errs := r.plan.config.RetryErrors
	var judged *executor.Usage // by all tries
	for n := 1; ; n++ {
		a, left := again.grade(r.ctx, old)
		judged = addUsage(judged, a.judged)
		a.judged = judged
		if left != nil {
			r.logTask(t, "warning", "workspace not removed: %v", left)
		}
		if why := executor.AsStop(a.cause); why != nil {
			r.halt(why)
			if why.Orderly {
				a.Verdict = Cancelled
			}
			return a
		}
		if a.Verdict != Errored || n > errs || executor.IsPermanent(a.cause) {
			return a
		}
		r.logTask(t, "warning", "task %s, trial %d: %s; grading it again", t.ID, old.TrialNum, a.Error)
		pause(r.ctx, r.stops, backoff(n))
		if why := r.ending(); why != nil {
			a.Score, a.Verdict, a.Error = nil, Cancelled, why.Error()
			return a
		}
	}
}

// copied is the snapshot with its contents put where to keeps them; nil for nil.
// What cannot be read any more is said to be missing.
func (s *Snapshot) copied(from *journal.BlobReader, to *snapshooter) *Snapshot {
	if s == nil {
		return nil
	}
	c := *s
	c.Entries, c.Removed = copiedEntries(s.Entries, from, to), copiedEntries(s.Removed, from, to)
	return &c
}

func copiedEntries(entries []SnapshotEntry, from *journal.BlobReader, to *snapshooter) []SnapshotEntry {
	list := slices.Clone(entries)
	for i := range list {
		e := &list[i]
		var err, lost error
		e.Blob, err = copiedBlob(e.Blob, from, to)
		if e.Before, lost = copiedBlob(e.Before, from, to); lost != nil && e.Given == GivenChanged {
			e.Given = GivenUnknown
		}
		if err != nil {
			e.Omitted = "not taken over: " + withoutPath(err).Error()
		}
	}
	return list
}

func copiedBlob(blob *journal.Blob, from *journal.BlobReader, to *snapshooter) (*journal.Blob, error) {
	if blob == nil {
		return nil, nil
	}
	data, err := from.Get(*blob)
	if err != nil {
		return nil, errors.New("its content is damaged")
	}
	return to.put(data)
}
