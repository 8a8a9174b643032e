package board

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"waza/eval"
	"waza/runner/catalog"
	"waza/runner/record"
)

// Status is the state of a job.
type Status string

// The states of a job.
const (
	Queued      Status = "queued" // other jobs of its user run
	Pending     Status = "pending"
	Running     Status = "running"
	Done        Status = "done"
	Failed      Status = "failed"
	Cancelled   Status = "cancelled"
	Interrupted Status = "interrupted" // its process ended; it can be resumed
)

// transitions are the states that may follow each state. A job starts without one. A run
// that is resumed takes its job back to Queued or Pending.
var transitions = map[Status][]Status{
	"":          {Queued, Pending},
	Queued:      {Running, Failed, Cancelled, Interrupted},
	Pending:     {Running, Failed, Cancelled, Interrupted},
	Running:     {Done, Failed, Cancelled, Interrupted},
	Done:        {Queued, Pending},
	Failed:      {Queued, Pending},
	Cancelled:   {Queued, Pending},
	Interrupted: {Queued, Pending},
}

// IsOver reports whether the job has ended. It may be resumed.
func (s Status) IsOver() bool { return s != "" && s != Queued && s != Pending && s != Running }

// statusOf is the state of the job of a run.
func statusOf(s record.Status) Status {
	switch s {
	case record.StatusRunning:
		return Running
	case record.StatusCompleted:
		return Done
	case record.StatusFailed:
		return Failed
	case record.StatusCancelled:
		return Cancelled
	}
	return Interrupted
}

// Job is a job as sync and the list of jobs show it.
type Job struct {
	ID       string         `json:"id"`
	Type     eval.SuiteKind `json:"job_type"`
	Status   Status         `json:"status"`
	User     string         `json:"user"`
	Percent  int            `json:"progress_pct"`
	Detail   string         `json:"progress_detail"`
	Ref      string         `json:"result_ref,omitempty"`
	Error    string         `json:"error,omitempty"`
	Created  Time           `json:"created_at"`
	Started  *Time          `json:"started_at,omitempty"`
	Finished *Time          `json:"completed_at,omitempty"`
}

// Time is a time as messages have it, with milliseconds and an offset.
type Time struct{ time.Time }

// MarshalText writes the time in UTC.
func (t Time) MarshalText() ([]byte, error) {
	return []byte(t.UTC().Format("2006-01-02T15:04:05.000-07:00")), nil
}

// MarshalJSON writes the time as text.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(`"` + t.UTC().Format("2006-01-02T15:04:05.000-07:00") + `"`), nil
}

// job is a job of the board. The board's lock guards it.
type job struct {
	Job
	suite       string
	messages    messages // of its kind, in this session; nil before it begins
	total, done int
	followed    bool      // a goroutine follows the run
	seq         int64     // of the last event; 0 when none is known. It belongs to the follower
	changed     bool      // the run has changed while it was followed
	begun       bool      // the watchers know of this session of the run
	sentAt      time.Time // when the last progress was sent
	ended       time.Time // of the run, as its record says
	pending     bool      // progress was not sent since it changed
}

// target is a model that the run asks.
type target struct {
	Provider string `json:"provider_key"`
	Model    string `json:"model_id"`
}

// move changes the state of a job. It is false when the state may not follow.
func (j *job) move(to Status) bool {
	if !slices.Contains(transitions[j.Status], to) {
		return false
	}
	j.Status = to
	return true
}

// ended is how many cases have ended by themselves: those of a job that is cancelled are no
// progress.
func ended(c record.Counts) int { return c.Done() - c.Cancelled }

// count sets how many cases have ended.
func (j *job) count(done int) {
	j.done = min(done, j.total)
	j.Percent = 0
	if j.total > 0 {
		j.Percent = 100 * j.done / j.total
	}
	j.Detail = fmt.Sprintf("%s: %d of %d cases", j.suite, j.done, j.total)
}

// describe takes what the list of runs says of a run.
func (j *job) describe(info *catalog.Info) {
	j.Type, j.suite, j.total = info.Suite.KindName(), info.Suite.Name, info.Trials.Total
	j.Created = Time{info.StartedAt}
	j.ended = time.Time{}
	if info.EndedAt != nil {
		j.ended = *info.EndedAt
	}
	j.count(ended(info.Trials))
}

// finish sets the end of a job.
func (j *job) finish(at time.Time, failure string) {
	j.Finished, j.Error = &Time{at}, failure
	if j.Status == Done {
		j.Ref = j.ID
		j.count(j.total)
	}
}

// reopen forgets the end of a job.
func (j *job) reopen() {
	j.Started, j.Finished, j.Ref, j.Error = nil, nil, "", ""
}

// targetsOf lists the models that a run asks, in its order. Without a model, it is
// the agent or the executor.
func targetsOf(rec *record.Run) []target {
	var list []target
	for _, c := range rec.Cells() {
		t := targetOf(rec, c)
		if !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	if len(list) == 0 {
		list = []target{targetOf(rec, nil)}
	}
	return list
}

// targetOf is the model that a cell of a run asks; nil is a run without a matrix.
func targetOf(rec *record.Run, c *record.Cell) target {
	model := rec.Config.Model
	if c != nil {
		model = cmp.Or(c.Model, model)
	}
	return target{rec.Config.Executor, cmp.Or(model, rec.Config.Agent, rec.Config.Executor)}
}

// caseID names a trial: the id of its task in the suite, with the number of the trial when
// there are several, and with its cell when the model alone does not distinguish it from others.
func caseID(ref *record.TaskRef, trial int) string {
	id := ref.ID
	if ref.Task != "" && (ref.Cell == nil || len(ref.Cell.Params) == 0) {
		id = ref.Task
	}
	if ref.Trials > 1 {
		return fmt.Sprintf("%s#%d", id, trial)
	}
	return id
}
