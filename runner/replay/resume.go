package replay

import (
	"errors"
	"fmt"
	"io"

	"waza/runner/journal"
	"waza/runner/record"
)

// Past is what a process must know of a run to resume it.
type Past struct {
	// State is the state of the tasks of a new record according to the journal alone.
	State *State
	// Status and Error are those of result.json. Without a valid result, the run is interrupted.
	Status record.Status
	Error  string
	Damage *record.Damage // of all files; nil without damage
	Lost   *record.Damage // of the journal; nil without damage
}

// ReadPast reads a run that this process has locked, to resume it with a new record, whose tasks can
// differ. It takes all lines of the journal from a reader, so that they are read once. spend can be
// nil.
func (r *RecordedRun) ReadPast(lines *journal.Reader, rec *record.Run, spend Spender) (*Past, error) {
	head, broken, err := r.readResultHead()
	if err != nil {
		return nil, err
	}
	check := newChecker(head, map[record.Blob]bool{})
	st, err := foldLines(lines, rec, check, spend.visitor())
	if err != nil {
		return nil, err
	}
	p := &Past{State: st, Status: record.StatusInterrupted, Lost: check.damage.OrNil()}
	if head != nil && head.EndedAt != nil {
		p.Status, p.Error = head.Status, head.Error
	}
	p.Damage, err = r.damage(head, broken, check, false)
	return p, err
}

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
