package runner

import (
	"errors"
	"fmt"
	"io"

	"waza/runner/journal"
)

// A run that is taken up again goes on with the numbers of its events. What ended
// it before, and what amended it then, keeps its number, and is delivered as
// something to tell a person: a subscriber gets every number once, and one end.
//
//	… trial_complete  run_complete  end  trial_graded  run_graded  run_resumed  trial_start … end
//	                  └──────────────── as log events ────────────┘

// supersedable reports whether events of the type count no more when the run is
// taken up again after them.
func (t EventType) supersedable() bool { return t == RunComplete || t == End || t.amends() }

// superseded is the event that is delivered instead of one that counts no more.
func superseded(e *Event) *Event {
	log := &Event{
		Seq: e.Seq, Time: e.Time, Type: Log, Level: "info", TaskID: e.TaskID, TaskName: e.TaskName, TaskNum: e.TaskNum, TotalTasks: e.TotalTasks, Role: e.Role,
	}
	switch e.Type {
	case RunComplete:
		log.Level, log.Message = "debug", fmt.Sprintf("the run was over (%s)", e.Status)
	case End:
		log.Message = fmt.Sprintf("the run ended here (%s), and was taken up again later", e.Status)
		if e.Error != "" {
			log.Message += ": " + e.Error
		}
	case TrialGraded:
		log.Message = fmt.Sprintf("trial %d was graded anew: %s, before that %s", e.TrialNum, e.Verdict, e.Was)
	case TaskGraded:
		log.Message = fmt.Sprintf("the task was summed up anew: %s, before that %s", e.Verdict, e.Was)
	case RunGraded:
		log.Message = "the run was graded anew"
	}
	return log
}

// lastResumed returns the number of the last line from a mark on that says that the
// run is taken up again; 0 when there is none.
func lastResumed(run *journal.Run, from journal.Mark) (int64, error) {
	r, err := run.JournalFrom(from)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	var l lifter
	last := int64(0)
	for {
		line, number, _, err := r.NextWhole()
		if errors.Is(err, io.EOF) {
			return last, nil
		}
		if err != nil {
			return 0, err
		}
		if e, _, err := l.lift(line); err == nil && e.Type == RunResumed {
			last = number
		}
	}
}
