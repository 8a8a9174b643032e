package replay

import (
	"context"
	"fmt"
	"io"
	"time"

	"waza/runner/journal"
	"waza/runner/pause"
	"waza/runner/record"
)

// RecordedRun is a run that is read from its files because it is not active in this process.
type RecordedRun struct {
	Run    *journal.Run
	Rec    *record.Run
	Broken *record.DamagedFile // damage of run.json; nil without

	memory memory
}

// Open opens a run by its id. The error may be [record.ErrRunNotFound].
func Open(store *journal.Store, id string) (*RecordedRun, error) {
	run, err := store.Open(id)
	if err != nil {
		return nil, err
	}
	return OpenFiles(run)
}

// A Source is a [record.Handle] that gives access to its state and files.
type Source interface {
	// State returns the current state of the run.
	State() (*State, error)
	// Files returns the directory of its record.
	Files() *journal.Run
}

// StateOf returns the state of a run and the files that its places refer to. It reads the
// journal once.
func StateOf(h record.Handle) (*journal.Run, *State, error) {
	s, ok := h.(Source)
	if !ok {
		return nil, nil, fmt.Errorf("run %s: its state and files are not accessible", h.ID())
	}
	st, err := s.State()
	return s.Files(), st, err
}

// OpenFiles returns the files of a recorded run.
func OpenFiles(run *journal.Run) (*RecordedRun, error) {
	rec, broken, err := ReadRecord(run)
	if err != nil {
		return nil, err
	}
	return &RecordedRun{Run: run, Rec: rec, Broken: broken}, nil
}

// ID returns the id of the run.
func (r *RecordedRun) ID() string { return r.Rec.RunID }

// Record returns the record of the run. The caller must not change it.
func (r *RecordedRun) Record() *record.Run { return r.Rec }

// Files returns the directory of the run's record.
func (r *RecordedRun) Files() *journal.Run { return r.Run }

// Progress reads the summary of a run that has ended, else the whole journal.
func (r *RecordedRun) Progress() (record.Progress, error) {
	head, err := r.currentHead()
	if err != nil {
		return record.Progress{}, err
	}
	if head == nil || head.EndedAt == nil {
		if known := r.memory.recall(r.Run.ReadingStamp()).progress; known != nil {
			return *known, nil
		}
		st, err := r.sharedState()
		if err != nil {
			return record.Progress{}, err
		}
		return st.Progress, nil
	}
	p := record.Progress{
		Status: head.Status, StartedAt: head.StartedAt, EndedAt: head.EndedAt, AmendedAt: head.AmendedAt,
		Summary: head.Summary, Error: head.Error,
	}
	if head.Summary != nil {
		p.Tasks, p.Trials = head.Summary.Counts, head.Summary.Trials.Counts
	}
	return p, nil
}

// Status returns the status of Progress. It does not read the events if it can avoid that.
func (r *RecordedRun) Status() (record.Status, error) {
	head, _, err := r.readResultHead()
	if err != nil {
		return "", err
	}
	if head != nil && head.EndedAt != nil {
		return head.Status, nil
	}
	if r.Run.Alive() {
		return record.StatusRunning, nil
	}
	if r.lacksEnd() {
		return record.StatusInterrupted, nil
	}
	p, err := r.Progress()
	return p.Status, err
}

// LacksEnd reports whether a run was certainly interrupted, in a fraction of the time of
// [record.Handle.Progress]. If it returns false, only that shows the status.
func LacksEnd(h record.Handle) bool {
	r, ok := h.(*RecordedRun)
	return ok && r.lacksEnd()
}

// lacksEnd is like [LacksEnd]. Without a result, only a line of the journal can contain the end.
func (r *RecordedRun) lacksEnd() bool {
	if head, broken, err := r.readResultHead(); err != nil || head != nil || broken != nil || r.Run.Alive() {
		return false
	}
	ended, err := r.Run.Mentions(`"type":"` + string(record.End) + `"`)
	return err == nil && !ended
}

// Results reads the whole journal.
func (r *RecordedRun) Results() ([]*record.Task, error) {
	st, err := r.sharedState()
	if err != nil {
		return nil, err
	}
	return st.Results(), nil
}

// WriteResult copies result.json. It creates the result from the journal when the process died
// before writing it, or when it refers to contents in other files.
func (r *RecordedRun) WriteResult(w io.Writer) error {
	damage, err := r.Damage()
	if err != nil {
		return err
	}
	head, err := r.currentHead()
	if err != nil {
		return err
	}
	if head != nil && !head.Stored {
		return r.copyResult(w, damage)
	}
	st, err := r.sharedState()
	if err != nil {
		return err
	}
	return WriteResult(w, r.Run, r.Rec, st, ResultOptions{Damage: damage})
}

func (r *RecordedRun) copyResult(w io.Writer, damage *record.Damage) error {
	f, err := r.Run.Result()
	if err != nil {
		return err
	}
	defer f.Close()
	return copyResult(w, f, damage)
}

// Trials reads the whole journal.
func (r *RecordedRun) Trials(visit func(task int, t *record.Trial) error) error {
	st, err := r.sharedState()
	if err != nil {
		return err
	}
	return VisitTrials(r.Run, st, visit)
}

// Outcomes reads the whole journal.
func (r *RecordedRun) Outcomes(visit func(task int, t *record.Trial, more int64) error) error {
	st, err := r.sharedState()
	if err != nil {
		return err
	}
	return VisitOutcomes(r.Run, st, visit)
}

// Chosen reads the whole journal, but decodes only the chosen trials.
func (r *RecordedRun) Chosen(choose func(task, num int) bool, visit func(task int, t *record.Trial) error) error {
	st, err := r.sharedState()
	if err != nil {
		return err
	}
	return VisitChosen(r.Run, st, choose, visit)
}

// Blobs opens the contents that the run stores separately.
func (r *RecordedRun) Blobs() (record.Blobs, error) { return r.Run.Blobs() }

// Subscribe returns the events of the run from fromSeq on.
func (r *RecordedRun) Subscribe(fromSeq int64) record.Subscription {
	first := max(1, fromSeq)
	return &recordedSubscription{RecordedRun: r, first: first, next: first}
}

// SubscribeHeads is like Subscribe, but the events lack their trials.
func (r *RecordedRun) SubscribeHeads(fromSeq int64) record.Subscription {
	first := max(1, fromSeq)
	return &recordedSubscription{RecordedRun: r, first: first, next: first, heads: true}
}

// recordedSubscription reads the journal to its end and, while another process still writes to
// it, polls for more.
type recordedSubscription struct {
	*RecordedRun
	mark  journal.Mark // no event before it is needed
	first int64
	next  int64
	ended bool // the end event was delivered
	heads bool // the events lack their trials
	// pause is the last pause without new events. Events come in bursts, so polling is frequent
	// after an event and slows down otherwise.
	pause time.Duration
	// resumed is the number of the last event found so far that resumed the run.
	resumed int64
}

func (s *recordedSubscription) Next(ctx context.Context) ([]*record.Event, error) {
	for !s.ended {
		alive := s.Run.Alive() // before reading, so that the last lines are read
		events, err := s.read(alive)
		if err != nil {
			return nil, err
		}
		if len(events) > 0 {
			s.pause = 0
			s.next = events[len(events)-1].Seq + 1
			s.ended = events[len(events)-1].Type == record.End
			return events, nil
		}
		if !alive {
			break
		}
		s.pause = NextPause(s.pause)
		if err := pause.For(ctx, s.pause); err != nil {
			return nil, err
		}
	}
	if end := s.endUnrecorded(); end != nil {
		s.ended = true
		return []*record.Event{end}, nil
	}
	return nil, io.EOF
}

// endUnrecorded returns the end of a run whose journal could not record it, taken from its
// result. It returns nil when the end was delivered or the run has no result. A subscriber
// without any event may have asked for events beyond the end.
func (s *recordedSubscription) endUnrecorded() *record.Event {
	if s.ended || s.next == s.first && s.first > 1 {
		return nil
	}
	head, _, err := s.readResultHead()
	if err != nil || head == nil || head.EndedAt == nil {
		return nil
	}
	return &record.Event{Seq: s.next, Time: *head.EndedAt, Type: record.End, Status: head.Status, Summary: head.Summary, Error: head.Error}
}

// read returns the next available events. It opens the file only for this call, because
// subscriptions are never closed.
func (s *recordedSubscription) read(alive bool) ([]*record.Event, error) {
	r, err := s.Run.JournalFrom(s.mark)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	end := int64(0)
	if !alive { // damage at the end is permanent
		end = allThere
	}
	var files *Trials
	if !s.heads {
		files = &Trials{Run: s.Run}
		defer files.Close()
	}
	events, mark, err := ReadEvents(r, files, s.next, end, func(number int64) (bool, error) {
		if number > s.resumed { // this may be the end: check whether the run was resumed after it
			later, err := lastResumed(s.Run, r.Mark())
			if err != nil {
				return false, err
			}
			s.resumed = max(s.resumed, later)
		}
		return number < s.resumed, nil
	})
	if err == nil {
		s.mark = mark
	}
	return events, err
}
