package board

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"waza/eval"
	"waza/eval/text"
	"waza/runner/catalog"
	"waza/runner/record"
)

// Status is the state of a job.
type Status string

// The states of a job.
const (
	Queued      Status = "queued" // waits for other jobs of its user
	Pending     Status = "pending"
	Running     Status = "running"
	Done        Status = "done"
	Failed      Status = "failed"
	Cancelled   Status = "cancelled"
	Interrupted Status = "interrupted" // its process ended; the job can be resumed
)

// transitions lists the valid next states of each state. A new job has no state. Resuming a run
// moves its job back to Queued or Pending.
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

// IsOver reports whether the job has ended. A job that has ended can be resumed.
func (s Status) IsOver() bool { return s != "" && s != Queued && s != Pending && s != Running }

// statusOf returns the state of a run's job.
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

// Job is a job in sync messages and in the list of jobs.
type Job struct {
	ID       string         `json:"id"`
	Type     eval.SuiteKind `json:"job_type"`
	Status   Status         `json:"status"`
	User     string         `json:"user"`
	Percent  int            `json:"progress_pct"`
	Detail   string         `json:"progress_detail"`
	Ref      string         `json:"result_ref,omitempty"`
	Error    string         `json:"error,omitempty"`
	Damage   string         `json:"damage,omitempty"` // to the record of a finished job
	Created  Time           `json:"created_at"`
	Started  *Time          `json:"started_at,omitempty"`
	Finished *Time          `json:"completed_at,omitempty"`
}

// Time is a time in the format of messages, with milliseconds and an offset.
type Time struct{ time.Time }

// MarshalJSON returns the time in UTC as a JSON string.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(`"` + t.UTC().Format("2006-01-02T15:04:05.000-07:00") + `"`), nil
}

// job is a job of the board. The board's lock guards it.
type job struct {
	Job
	suite       string
	messages    messages // messages of its kind in this session; nil before the session starts
	total, done int
	asks        bool                     // the run decides a question, so that most of its cases are not needed
	deciding    *record.DecisionProgress // of the question of the run; nil while it is unknown, and for other runs
	answer      string                   // to that question
	followed    bool                     // a goroutine follows the run
	seq         int64                    // number of the last event; 0 means unknown. Only the follower uses it
	changed     bool                     // the run changed while it was followed
	announced   bool                     // watchers got the start of this session
	sentAt      time.Time                // when the last progress was sent
	ended       time.Time                // end of the run according to its record
	pending     bool                     // progress changed since it was last sent
	stamp       string                   // of the record that Damage describes; empty means unknown
}

// target is a model that the run uses.
type target struct {
	Provider string `json:"provider_key"`
	Model    string `json:"model_id"`
}

// move changes the state of a job. It returns false when the transition is invalid.
func (j *job) move(to Status) bool {
	if !slices.Contains(transitions[j.Status], to) {
		return false
	}
	j.Status = to
	return true
}

// ended counts the cases that were not cancelled. Cases of a cancelled job do not count as
// progress.
func ended(c record.Counts) int { return c.Done() - c.Cancelled }

// count sets the number of ended cases.
func (j *job) count(done int) {
	j.done = min(done, j.total)
	j.Percent = 0
	if j.total > 0 {
		j.Percent = 100 * j.done / j.total
	}
	j.Detail = fmt.Sprintf("%s: %d of %d cases", j.suite, j.done, j.total)
	switch p := j.deciding; {
	case j.answer != "":
		j.Detail = j.suite + ": " + j.answer
	case p != nil:
		j.Percent, j.Detail = int(100*p.Share()), j.suite+": "+p.Text
	case j.asks && !j.Status.IsOver():
		j.Percent, j.Detail = 0, fmt.Sprintf("%s: %s", j.suite, text.Count(j.done, "case", "cases"))
	}
}

// decisionText returns the answer to the question of a run; empty without one.
func decisionText(sum *record.Summary) string {
	if sum == nil || sum.Decision == nil {
		return ""
	}
	return sum.Decision.Text
}

// describe copies the fields of the list of runs.
func (j *job) describe(info *catalog.Info) {
	j.Type, j.suite, j.total = info.Suite.KindName(), info.Suite.Name, info.Trials.Total
	j.Created = Time{info.StartedAt}
	j.ended, j.deciding = time.Time{}, nil
	if info.EndedAt != nil {
		j.ended = *info.EndedAt
	}
	j.count(ended(info.Trials))
	j.Damage = damageOf(info)
}

// damageOf describes the damage to a run's record; empty without damage.
func damageOf(info *catalog.Info) string {
	if !info.Damage.Damaged() {
		return ""
	}
	return Failure(info.Damage.String())
}

// finish sets the end of a job.
func (j *job) finish(at time.Time, failure string) {
	j.Finished, j.Error, j.deciding = &Time{at}, failure, nil
	if j.Status == Done {
		j.Ref = j.ID
		j.count(j.total)
	}
}

// reopen clears the end of a job.
func (j *job) reopen() {
	j.deciding, j.answer = nil, ""
	j.Started, j.Finished, j.Ref, j.Error, j.Damage, j.stamp = nil, nil, "", "", "", ""
}

// targetsOf returns the models of the tasks of a run's suite, in the run's order. A run without a model has one
// target: its agent or executor.
func targetsOf(rec *record.Run) []target {
	var list []target
	for i := range rec.Tasks {
		ref := &rec.Tasks[i]
		if t := targetOfTask(rec, ref); ref.Role == record.RoleTask && !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	if len(list) == 0 {
		list = []target{targetOf(rec, nil)}
	}
	return list
}

// targetOfTask returns the model of a task: its own one, or that of its cell.
func targetOfTask(rec *record.Run, ref *record.TaskRef) target { return named(rec, rec.ModelOf(ref)) }

// targetOf returns the model of a cell; nil means a run without a matrix.
func targetOf(rec *record.Run, c *record.Cell) target {
	return named(rec, rec.ModelOf(&record.TaskRef{Cell: c}))
}

// named returns the target with a model, or with the agent or executor if these choose the model.
func named(rec *record.Run, model string) target {
	return target{rec.Config.Executor, cmp.Or(model, rec.Config.Agent, rec.Config.Executor)}
}

// caseID returns the name of a trial: the id of its task in the suite. It includes the number of
// the trial when there are several, and the cell when the model alone is ambiguous.
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
