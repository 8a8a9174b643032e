package replay

import (
	"errors"
	"fmt"
	"io"

	"waza/runner/journal"
	"waza/runner/record"
)

// superseded returns the log event that is delivered instead of a void event.
func superseded(e *record.Event) *record.Event {
	log := &record.Event{
		Seq: e.Seq, Time: e.Time, Type: record.Log, Level: "info", TaskID: e.TaskID, TaskName: e.TaskName,
		TaskNum: e.TaskNum, TotalTasks: e.TotalTasks, Role: e.Role,
	}
	switch e.Type {
	case record.RunComplete:
		log.Level, log.Message = "debug", fmt.Sprintf("the run had ended (%s)", e.Status)
	case record.End:
		log.Message = fmt.Sprintf("the run ended here (%s) and was resumed later", e.Status)
		if e.Error != "" {
			log.Message += ": " + e.Error
		}
	case record.TrialGraded:
		log.Message = fmt.Sprintf("trial %d was graded again: %s, previously %s", e.TrialNum, e.Verdict, e.Was)
	case record.TaskGraded:
		log.Message = fmt.Sprintf("the task has a new result: %s, previously %s", e.Verdict, e.Was)
	case record.RunGraded:
		log.Message = "the run was graded again"
	}
	return log
}

// lastResumed returns the number of the last line after a mark that resumed the run; 0 without
// one.
func lastResumed(run *journal.Run, from journal.Mark) (int64, error) {
	r, err := run.JournalFrom(from)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	r.Reuse()
	var l Lifter
	last := int64(0)
	for {
		line, number, _, err := r.NextUndamaged()
		if errors.Is(err, io.EOF) {
			return last, nil
		}
		if err != nil {
			return 0, err
		}
		if e, _, err := l.Lift(line); err == nil && e.Type == record.RunResumed {
			last = number
		}
	}
}
