package regrade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"waza/runner/catalog"
	"waza/runner/internal/secrets"
	"waza/runner/journal"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/replay"
	"waza/runner/tally"
	"waza/runner/workspace"
)

// An Amender changes the records of runs that are over. It is safe for concurrent use.
type Amender struct {
	Catalog *catalog.Catalog
	Planner *plan.Planner
	// Admit admits an amendment. The returned context ends with ctx, and when no further
	// amendments are wanted. The amendment calls done at its end.
	Admit func(ctx context.Context) (_ context.Context, done func(), err error)
	// Ended is called after an amendment has taken effect and before others can change the run.
	Ended func(log *journal.Writer, h record.Handle)
	Log   *slog.Logger
}

// An Amendment changes the trials of a run that is over. Its changes are in the journal at once,
// and take effect when the amendment ends:
//
//	trial_graded … ─► tasks and summary from all trials ─► task_graded … run_graded ─► result.json
//
// An amendment that was cut short changes nothing. The next one on the same run finds its
// changes and makes them effective with its own. The methods are safe for concurrent use.
type Amendment struct {
	rec    *record.Run
	broken *record.DamagedFile // run.json, if it is damaged
	// dir is the directory for workspaces during the amendment. It is removed afterwards.
	dir string
	run *journal.Run

	mu       sync.Mutex // guards the fields below
	log      *journal.Writer
	enc      *replay.Encoder
	files    *replay.Trials
	st       *replay.State
	secrets  *secrets.Redactor // nil if there can be no secrets
	criteria record.Criteria
	dirty    bool  // some changes have to take effect
	replaced bool  // some of them by this amendment
	err      error // of the journal, which accepts no more events
}

// Amend calls change to amend a run that is over, and makes the changes effective. If change
// fails, the changes that it made before still take effect. The error is
// [record.ErrRunNotFound], a [*record.BusyError], the error of change, or an error of reading or
// writing the record. The context of change ends with ctx, and with the runner.
func (r *Amender) Amend(ctx context.Context, id string, change func(context.Context, *Amendment) error) error {
	ctx, done, err := r.Admit(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := r.Catalog.Settle(ctx, id); err != nil {
		return err
	}
	run, err := r.Catalog.Store.Open(id)
	if err != nil {
		return err
	}
	a, err := openAmendment(run)
	switch {
	case errors.Is(err, journal.ErrRecorded):
		return &record.BusyError{RunID: id, Running: true}
	case errors.Is(err, journal.ErrAmended):
		return &record.BusyError{RunID: id}
	case err != nil:
		return fmt.Errorf("run %s: %w", id, err)
	}
	err = change(ctx, a)
	return errors.Join(err, a.close(err == nil, r))
}

func openAmendment(run *journal.Run) (*Amendment, error) {
	rec, broken, err := replay.ReadRecord(run)
	if err != nil {
		return nil, err
	}
	log, err := run.Amend()
	if err != nil {
		return nil, err
	}
	a := &Amendment{rec: rec, broken: broken, run: run, dir: log.WorkDir(), log: log, enc: new(replay.Encoder)}
	if err := a.read(run); err != nil {
		return nil, errors.Join(err, a.shut())
	}
	return a, nil
}

// read reads the present state of the run.
func (a *Amendment) read(run *journal.Run) error {
	var err error
	h := &replay.RecordedRun{Run: run, Rec: a.rec, Broken: a.broken}
	if a.st, err = h.State(); err != nil {
		return err
	}
	if a.files, err = replay.OpenTrials(run); err != nil {
		return err
	}
	a.dirty = a.st.Amended != nil
	if head, err := h.Head(); err == nil && head.EndedAt != nil {
		// An earlier amendment may have been cut short just before it wrote the result.
		a.dirty = a.dirty || !sameJSON(a.st.Progress.AmendedAt, head.AmendedAt)
	}
	a.criteria = a.rec.Criteria()
	if a.st.Criteria != nil && len(a.st.Criteria.Thresholds) == len(a.rec.Tasks) {
		a.criteria = *a.st.Criteria
	}
	return nil
}

// Redact removes secrets from everything that is recorded from now on.
func (a *Amendment) Redact(secrets *secrets.Redactor) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.secrets = secrets
}

// Criteria returns the criteria by which the run is summed up.
func (a *Amendment) Criteria() record.Criteria {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.criteria
}

// SetCriteria sets the criteria by which the run is summed up, also in later amendments.
func (a *Amendment) SetCriteria(c record.Criteria) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !reflect.DeepEqual(a.criteria, c) {
		a.criteria, a.dirty = c, true
	}
}

// Trial returns the present state of a trial by the index of its task and its number. It returns
// nil if the trial does not exist or had not ended when the run did.
func (a *Amendment) Trial(task, num int) (*record.Trial, error) {
	a.mu.Lock()
	at := a.placeLocked(task, num-a.firstTrial(task))
	a.mu.Unlock()
	if at.Size == 0 {
		return nil, nil
	}
	raw, err := a.files.Bytes(at, nil)
	if err != nil {
		return nil, err
	}
	blobs, err := replay.BlobsOf(raw)
	if err != nil {
		return nil, err
	}
	blobs.Register(a.log.Blobs()) // the replacement of the trial has the same contents
	res := new(record.Trial)
	return res, a.files.DecodeRaw(raw, res)
}

func (a *Amendment) firstTrial(task int) int {
	if task < 0 || task >= len(a.rec.Tasks) {
		return 0
	}
	return a.rec.Tasks[task].First
}

// placeLocked returns the place of a trial, or the zero place if there is no such trial.
func (a *Amendment) placeLocked(task, index int) replay.Place {
	if task < 0 || task >= len(a.st.Tasks) || index < 0 || index >= len(a.st.Tasks[task].Trials) {
		return replay.Place{}
	}
	return a.st.Place(replay.KeyOf(task, index))
}

// earlierGrades returns the grades of a trial that amendments have replaced, the newest first.
func (a *Amendment) earlierGrades(task, num int) ([][]record.Grade, error) {
	a.mu.Lock()
	places := slices.Clone(a.st.Earlier[replay.KeyOf(task, num-a.firstTrial(task))])
	a.mu.Unlock()
	var list [][]record.Grade
	for _, at := range slices.Backward(places) {
		var res replay.LeanTrial
		if err := res.Read(a.files, at); err != nil {
			return nil, err
		}
		list = append(list, res.Graders)
	}
	return list, nil
}

// Replace replaces the trial that has the number of res in the task at an index. was is the
// trial's present verdict. The change is in the journal when Replace returns.
func (a *Amendment) Replace(task int, was record.Verdict, res *record.Trial) error {
	t := a.rec.Tasks[task]
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.recordLocked(&record.Event{
		Type: record.TrialGraded, TaskID: t.ID, TaskName: t.Name, TaskNum: task + 1, TotalTasks: len(a.rec.Tasks), Role: t.Role,
		TrialNum: res.TrialNum, TotalTrials: t.Trials, Verdict: res.Verdict, Was: was, Score: res.Score, DurationMS: res.DurationMS, Trial: res,
	})
	if err == nil {
		a.dirty, a.replaced = true, true
	}
	return err
}

// recordLocked numbers an event and adds it to the journal and to the state.
func (a *Amendment) recordLocked(e *record.Event) error {
	if a.err != nil {
		return a.err
	}
	e.Time, e.Seq = time.Now().UTC(), a.log.Number()
	e, at, _, err := a.enc.Append(a.log, e, a.secrets)
	if err != nil {
		return err
	}
	if err := a.log.Flush(); err != nil {
		a.err = fmt.Errorf("cannot amend the run: %w", err)
		return a.err
	}
	a.st.Apply(e, at)
	return nil
}

// close makes the changes effective and releases the run. If whole is not set, it does so only
// for changes of this amendment, not for those that an earlier one left.
func (a *Amendment) close(whole bool, r *Amender) error {
	var err error
	if a.dirty && (whole || a.replaced) {
		if err = a.finish(); err == nil && a.st.Progress.EndedAt != nil {
			r.Ended(a.log, &replay.RecordedRun{Run: a.run, Rec: a.rec, Broken: a.broken})
		}
	}
	if rerr := workspace.RemoveAll(a.dir); rerr != nil {
		r.Log.Warn("workspaces not removed", "run", a.rec.RunID, "error", rerr)
	}
	return errors.Join(err, a.shut())
}

func (a *Amendment) shut() error {
	if a.files != nil {
		a.files.Close()
	}
	return a.log.Close()
}

// finish sums up the run again, and writes its result if it has one. The result of an
// interrupted run is always computed from its journal.
func (a *Amendment) finish() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	sum, err := a.sumUpLocked()
	if err != nil {
		return err
	}
	if err := a.recordLocked(&record.Event{
		Type: record.RunGraded, Summary: sum, Criteria: &a.criteria, TotalTasks: len(a.rec.Tasks),
	}); err != nil {
		return err
	}
	if a.broken != nil && a.broken.Restored {
		b, err := json.MarshalIndent(a.rec, "", "  ")
		if err == nil {
			err = a.log.WriteRequest(append(b, '\n'))
		}
		if err != nil {
			return fmt.Errorf("run.json not written: %w", err)
		}
	}
	if a.st.Progress.EndedAt == nil {
		return nil
	}
	err = a.log.WriteResult(func(w io.Writer) error {
		return replay.WriteResult(w, a.run, a.rec, a.st, replay.ResultOptions{Stored: true})
	})
	if err != nil {
		return fmt.Errorf("result not written: %w", err)
	}
	return nil
}

// sumUpLocked sums up the run like the scheduler, with one trial at a time in memory. Tasks that
// had not ended with the run stay so.
func (a *Amendment) sumUpLocked() (*record.Summary, error) {
	rec := *a.rec
	rec.Metrics = a.criteria.Metrics
	sums := tally.NewRun(&rec)
	for i, ref := range rec.Tasks {
		t := tally.NewTask(&ref, a.criteria.Thresholds[i])
		for j := range a.st.Tasks[i].Trials {
			at := a.placeLocked(i, j)
			if at.Size == 0 {
				continue
			}
			var res replay.LeanTrial
			if err := res.Read(a.files, at); err != nil {
				return nil, err
			}
			sums.AddTrial(i, &res.Trial)
			t.Add(&res.Trial)
			t.Early.Add(j, res.Verdict)
		}
		old := a.taskLocked(i)
		if old == nil {
			continue
		}
		t.Broken = old.Error
		res := t.Result(a.criteria.Thresholds[i])
		if sameJSON(old, res) {
			continue
		}
		e := &record.Event{
			Type: record.TaskGraded, TaskID: ref.ID, TaskName: ref.Name, TaskNum: i + 1, TotalTasks: len(rec.Tasks),
			Role: ref.Role, Verdict: res.Verdict, Was: old.Verdict, Task: res,
		}
		if err := a.recordLocked(e); err != nil {
			return nil, err
		}
	}
	a.st.Adopt()
	sum := sums.Summary(a.st, rec.Metrics)
	if old := a.st.Progress.Summary; old != nil {
		sum.DurationMS = old.DurationMS
		if sum.Triggers == nil { // records of older runs do not contain them
			sum.Triggers = old.Triggers
		}
	}
	return sum, nil
}

// taskLocked returns the present result of a task; nil if the task had not ended.
func (a *Amendment) taskLocked(task int) *record.Task {
	if a.st.Amended != nil && a.st.Amended.Tasks[task] != nil {
		return a.st.Amended.Tasks[task]
	}
	return a.st.Tasks[task].Result
}

func sameJSON(a, b any) bool {
	x, err := json.Marshal(a)
	if err != nil {
		return false
	}
	y, err := json.Marshal(b)
	return err == nil && string(x) == string(y)
}
