package runner

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

	"waza/runner/grader"
	"waza/runner/journal"
	"waza/runner/provider"
)

// BusyError says that the record of a run cannot be changed now.
type BusyError struct {
	RunID string
	// GoesOn: the run is not over. If not, somebody else changes its record.
	GoesOn bool
	// PID is the process that carries it out, where that matters; else 0.
	PID int
}

func (e *BusyError) Error() string {
	if e.GoesOn && e.PID != 0 {
		return fmt.Sprintf("run %s still goes on, in process %d", e.RunID, e.PID)
	}
	if e.GoesOn {
		return fmt.Sprintf("run %s still goes on", e.RunID)
	}
	return fmt.Sprintf("run %s is being graded or reviewed already; try again when that is done", e.RunID)
}

// Amender changes the records of runs that are over. It is safe for concurrent use.
type Amender struct {
	Catalog *Catalog
	Planner *Planner
	// Begin admits an amendment. Its context ends with ctx and when no further
	// amendments are wanted; the amendment calls done when it is over.
	Begin func(ctx context.Context) (_ context.Context, done func(), err error)
	// Ended is called when an amendment has taken effect, before the run is free
	// for others.
	Ended func(log *journal.Writer, h Handle)
	Log   *slog.Logger
}

// Amendment changes the trials of a run that is over. What it replaces is in the
// journal at once, and takes effect when the amendment ends:
//
//	trial_graded … ─► tasks and summary from all trials ─► task_graded … run_graded ─► result.json
//
// One that was cut short changes nothing; the next on the same run finds what it
// replaced, and lets it take effect with its own. The methods are safe for
// concurrent use.
type Amendment struct {
	rec    *Record
	broken *DamagedFile // run.json, when it is damaged
	// dir is where workspaces belong meanwhile. It is removed afterwards.
	dir string
	run *journal.Run

	mu       sync.Mutex // guards the fields below
	log      *journal.Writer
	enc      *encoder
	files    *trialFiles
	st       *foldState
	secrets  *provider.Redactor // nil when there can be none
	criteria Criteria
	dirty    bool  // there is something to take effect
	replaced bool  // some of it by this amendment
	err      error // the journal's: it takes no more
}

// Amend lets change amend a run that is over, and makes it take effect. When
// change fails, what it had replaced before takes effect all the same. The error
// is [ErrRunNotFound], a [*BusyError], what change returned, or tells why the
// record cannot be read or written. The context of change ends with ctx, and with
// the runner.
func (r *Amender) Amend(ctx context.Context, id string, change func(context.Context, *Amendment) error) error {
	ctx, done, err := r.Begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := r.Catalog.Settle(ctx, id); err != nil {
		return err
	}
	run, err := r.Catalog.store.Open(id)
	if errors.Is(err, journal.ErrNotFound) {
		return fmt.Errorf("%w: %s", ErrRunNotFound, id)
	}
	if err != nil {
		return err
	}
	a, err := openAmendment(run)
	switch {
	case errors.Is(err, journal.ErrRecorded):
		return &BusyError{RunID: id, GoesOn: true}
	case errors.Is(err, journal.ErrAmended):
		return &BusyError{RunID: id}
	case err != nil:
		return fmt.Errorf("run %s: %w", id, err)
	}
	err = change(ctx, a)
	return errors.Join(err, a.close(err == nil, r))
}

func openAmendment(run *journal.Run) (*Amendment, error) {
	rec, broken, err := readRecord(run)
	if err != nil {
		return nil, err
	}
	log, err := run.Amend()
	if err != nil {
		return nil, err
	}
	a := &Amendment{rec: rec, broken: broken, run: run, dir: log.WorkDir(), log: log, enc: newEncoder()}
	if err := a.read(run); err != nil {
		return nil, errors.Join(err, a.shut())
	}
	return a, nil
}

// read finds out how the run stands.
func (a *Amendment) read(run *journal.Run) error {
	var err error
	h := &recorded{run: run, rec: a.rec, broken: a.broken}
	if a.st, err = h.State(); err != nil {
		return err
	}
	if a.files, err = openTrials(run); err != nil {
		return err
	}
	a.dirty = a.st.amended != nil
	if head, err := h.head(); err == nil && head.EndedAt != nil {
		// An amendment may have been cut short just before it wrote the result.
		a.dirty = a.dirty || !sameJSON(a.st.progress.AmendedAt, head.AmendedAt)
	}
	a.criteria = a.rec.criteria()
	if a.st.criteria != nil && len(a.st.criteria.Thresholds) == len(a.rec.Tasks) {
		a.criteria = *a.st.criteria
	}
	return nil
}

// Redact takes secrets out of what is recorded from now on.
func (a *Amendment) Redact(secrets *provider.Redactor) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.secrets = secrets
}

// Criteria are what the run is summed up by.
func (a *Amendment) Criteria() Criteria {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.criteria
}

// SetCriteria sums the run up by other criteria, which hold for later amendments, too.
func (a *Amendment) SetCriteria(c Criteria) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !reflect.DeepEqual(a.criteria, c) {
		a.criteria, a.dirty = c, true
	}
}

// Trial returns the trial of that number of a task, by its index, as it stands
// now. It is nil when there is no such trial or it had not ended when the run did.
func (a *Amendment) Trial(task, num int) (*TrialResult, error) {
	a.mu.Lock()
	at := a.placeLocked(task, num-a.firstTrial(task))
	a.mu.Unlock()
	if at.size == 0 {
		return nil, nil
	}
	raw, err := a.files.bytes(at, nil)
	if err != nil {
		return nil, err
	}
	blobs, err := blobsOf(raw)
	if err != nil {
		return nil, err
	}
	blobs.tell(a.log.Blobs()) // what takes the place of the trial has the same contents
	res := new(TrialResult)
	return res, a.files.decodeRaw(raw, res)
}

func (a *Amendment) firstTrial(task int) int {
	if task < 0 || task >= len(a.rec.Tasks) {
		return 0
	}
	return a.rec.Tasks[task].First
}

// placeLocked finds the trial at an index of a task; the zero place when there is none.
func (a *Amendment) placeLocked(task, index int) place {
	if task < 0 || task >= len(a.st.tasks) || index < 0 || index >= len(a.st.tasks[task].trials) {
		return place{}
	}
	return a.st.place(keyOf(task, index))
}

// earlierGrades returns what graders made of a trial before amendments replaced
// it, the newest first.
func (a *Amendment) earlierGrades(task, num int) ([][]grader.Result, error) {
	a.mu.Lock()
	places := slices.Clone(a.st.earlier[keyOf(task, num - a.firstTrial(task))])
	a.mu.Unlock()
	var list [][]grader.Result
	for _, at := range slices.Backward(places) {
		var res tallied
		if err := res.read(a.files, at); err != nil {
			return nil, err
		}
		list = append(list, res.Graders)
	}
	return list, nil
}

// Replace puts res in the place of the trial that it names, of the task at that
// index. was is the trial's verdict so far. It is in the journal when Replace
// returns.
func (a *Amendment) Replace(task int, was Verdict, res *TrialResult) error {
	t := a.rec.Tasks[task]
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.recordLocked(&Event{
		Type: TrialGraded, TaskID: t.ID, TaskName: t.Name, TaskNum: task + 1, TotalTasks: len(a.rec.Tasks), Role: t.Role,
		TrialNum: res.TrialNum, TotalTrials: t.Trials, Verdict: res.Verdict, Was: was, Score: res.Score, DurationMS: res.DurationMS, Trial: res,
	})
	if err == nil {
		a.dirty, a.replaced = true, true
	}
	return err
}

// recordLocked numbers an event, writes it to the journal and to the fold.
func (a *Amendment) recordLocked(e *Event) error {
	if a.err != nil {
		return a.err
	}
	e.Time, e.Seq = time.Now().UTC(), a.log.Number()
	e, line, trialAt, _, err := a.enc.record(e, a.secrets, a.log.Blobs())
	if err != nil {
		return err
	}
	off := a.log.Append(line)
	if err := a.log.Flush(); err != nil {
		a.err = fmt.Errorf("the run cannot be amended: %w", err)
		return a.err
	}
	var at place
	if e.Trial != nil {
		at = lastMember(line, line[trialAt:len(line)-1])
		at.off += off
	}
	a.st.apply(e, at)
	return nil
}

// close lets what was replaced take effect, and gives the run free. Without whole,
// what an earlier amendment left is not reason enough to do so.
func (a *Amendment) close(whole bool, r *Amender) error {
	var err error
	if a.dirty && (whole || a.replaced) {
		if err = a.finish(); err == nil && a.st.progress.EndedAt != nil {
			r.Ended(a.log, &recorded{run: a.run, rec: a.rec, broken: a.broken})
		}
	}
	if rerr := removeAll(a.dir); rerr != nil {
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

// finish sums the run up anew, and writes its result if it has one: that of a run
// that was interrupted is always made of its journal.
func (a *Amendment) finish() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	sum, err := a.sumUpLocked()
	if err != nil {
		return err
	}
	if err := a.recordLocked(&Event{Type: RunGraded, Summary: sum, Criteria: &a.criteria, TotalTasks: len(a.rec.Tasks)}); err != nil {
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
	if a.st.progress.EndedAt == nil {
		return nil
	}
	err = a.log.WriteResult(func(w io.Writer) error { return writeResult(w, a.files, a.rec, a.st, resultOptions{stored: true}) })
	if err != nil {
		return fmt.Errorf("result not written: %w", err)
	}
	return nil
}

// sumUpLocked does what the scheduler does as trials end: one trial at a time is
// in memory. Tasks that had not ended with the run stay so.
func (a *Amendment) sumUpLocked() (*Summary, error) {
	rec := *a.rec
	rec.Metrics = a.criteria.Metrics
	tally := newRunTally(&rec)
	for i, ref := range rec.Tasks {
		t := newTaskTally(&ref, a.criteria.Thresholds[i])
		for j := range a.st.tasks[i].trials {
			at := a.placeLocked(i, j)
			if at.size == 0 {
				continue
			}
			var res tallied
			if err := res.read(a.files, at); err != nil {
				return nil, err
			}
			tally.addTrial(i, &res.TrialResult)
			t.add(&res.TrialResult)
			t.early.add(j, res.Verdict)
		}
		old := a.taskLocked(i)
		if old == nil {
			continue
		}
		t.broken = old.Error
		res := t.result(a.criteria.Thresholds[i])
		tally.addTask(i, res)
		if sameJSON(old, res) {
			continue
		}
		e := &Event{Type: TaskGraded, TaskID: ref.ID, TaskName: ref.Name, TaskNum: i + 1, TotalTasks: len(rec.Tasks), Role: ref.Role, Verdict: res.Verdict, Was: old.Verdict, Task: res}
		if err := a.recordLocked(e); err != nil {
			return nil, err
		}
	}
	sum := tally.summary(rec.Metrics)
	if old := a.st.progress.Summary; old != nil {
		sum.DurationMS = old.DurationMS
		if sum.Triggers == nil { // records of older runs say nothing of them
			sum.Triggers = old.Triggers
		}
	}
	return sum, nil
}

// taskLocked is the result of a task as it stands now; nil when it had not ended.
func (a *Amendment) taskLocked(task int) *TaskResult {
	if a.st.amended != nil && a.st.amended.tasks[task] != nil {
		return a.st.amended.tasks[task]
	}
	return a.st.tasks[task].result
}

func sameJSON(a, b any) bool {
	x, err := json.Marshal(a)
	if err != nil {
		return false
	}
	y, err := json.Marshal(b)
	return err == nil && string(x) == string(y)
}
