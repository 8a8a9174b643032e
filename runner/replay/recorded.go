package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"waza/runner/journal"
	"waza/runner/pause"
	"waza/runner/record"
)

// Recorded is a run that does not go on in this process, read from its files.
type Recorded struct {
	Run    *journal.Run
	Rec    *record.Run
	Broken *record.DamagedFile // run.json, when it is damaged
}

// Open finds a run by its files; the error may be [record.ErrRunNotFound].
func Open(store *journal.Store, id string) (*Recorded, error) {
	run, err := store.Open(id)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, fmt.Errorf("%w: %s", record.ErrRunNotFound, id)
	}
	if err != nil {
		return nil, err
	}
	return OpenFiles(run)
}

// Source is a [record.Handle] that can be read by its parts.
type Source interface {
	// State is the state of the run so far.
	State() (*State, error)
	// Files is the directory of its record.
	Files() *journal.Run
}

// StateOf returns the state of a run and what its places refer to. It reads the
// journal once.
func StateOf(h record.Handle) (*journal.Run, *State, error) {
	s, ok := h.(Source)
	if !ok {
		return nil, nil, fmt.Errorf("run %s: cannot be read by its parts", h.ID())
	}
	st, err := s.State()
	return s.Files(), st, err
}

// OpenFiles returns the files of a recorded run.
func OpenFiles(run *journal.Run) (*Recorded, error) {
	rec, broken, err := ReadRecord(run)
	if err != nil {
		return nil, err
	}
	return &Recorded{Run: run, Rec: rec, Broken: broken}, nil
}

// ID returns the id of the run.
func (r *Recorded) ID() string { return r.Rec.RunID }

// Record returns what was asked of the run. The caller must not change it.
func (r *Recorded) Record() *record.Run { return r.Rec }

// Files is the directory of the run's record.
func (r *Recorded) Files() *journal.Run { return r.Run }

// Progress reads the summary of a run that has ended, else the whole journal.
func (r *Recorded) Progress() (record.Progress, error) {
	head, _, err := r.believed()
	if err != nil {
		return record.Progress{}, err
	}
	if head != nil && head.EndedAt != nil {
		p := record.Progress{
			Status: head.Status, StartedAt: head.StartedAt, EndedAt: head.EndedAt, AmendedAt: head.AmendedAt,
			Summary: head.Summary, Error: head.Error,
		}
		if head.Summary != nil {
			p.Tasks, p.Trials = head.Summary.Counts, head.Summary.Trials.Counts
		}
		return p, nil
	}
	st, err := Refold(r.Run, r.Rec)
	if err != nil {
		return record.Progress{}, err
	}
	return st.Progress, nil
}

// Status is that of Progress, without a look at the events where it can be told
// without.
func (r *Recorded) Status() (record.Status, error) {
	head, _, err := r.believed()
	if err != nil {
		return "", err
	}
	if head != nil && head.EndedAt != nil {
		return head.Status, nil
	}
	if r.Run.Alive() {
		return record.StatusRunning, nil
	}
	p, err := r.Progress()
	return p.Status, err
}

// Results reads the whole journal.
func (r *Recorded) Results() ([]*record.Task, error) {
	st, err := r.State()
	if err != nil {
		return nil, err
	}
	return st.Results(), nil
}

// WriteResult copies result.json or, when its process did not live to write it or
// it refers to contents that are elsewhere, makes it from the journal.
func (r *Recorded) WriteResult(w io.Writer) error {
	damage, err := r.Damage()
	if err != nil {
		return err
	}
	head, _, err := r.believed()
	if err != nil {
		return err
	}
	if head != nil && !head.Stored {
		return r.copyResult(w, damage)
	}
	st, err := r.State()
	if err != nil {
		return err
	}
	files, err := OpenTrials(r.Run)
	if err != nil {
		return err
	}
	defer files.Close()
	return WriteResult(w, files, r.Rec, st, ResultOptions{Damage: damage})
}

func (r *Recorded) copyResult(w io.Writer, damage *record.Damage) error {
	f, err := r.Run.Result()
	if err != nil {
		return err
	}
	defer f.Close()
	return copyResult(w, f, damage)
}

// Trials reads the whole journal.
func (r *Recorded) Trials(visit func(task int, t *record.Trial) error) error {
	st, err := r.State()
	if err != nil {
		return err
	}
	return VisitTrials(r.Run, st, visit)
}

// Blobs opens the contents that the run recorded apart.
func (r *Recorded) Blobs() (record.Blobs, error) { return r.Run.Blobs() }

// Subscribe returns the events of the run from fromSeq on.
func (r *Recorded) Subscribe(fromSeq int64) record.Subscription {
	first := max(1, fromSeq)
	return &recordedSubscription{Recorded: r, first: first, next: first}
}

// recordedSubscription reads the journal to its end and, while another process
// still writes to it, looks again for more.
type recordedSubscription struct {
	*Recorded
	mark  journal.Mark // no event before it is wanted
	first int64
	next  int64
	ended bool // the end event was delivered
	// pause was the last one in vain: events come in flocks, so that it is worth
	// looking often after one, and less and less often when there is none.
	pause time.Duration
	// resumed is the number of the last event, as far as was looked for, with
	// which the run was taken up again.
	resumed int64
}

func (s *recordedSubscription) Next(ctx context.Context) ([]*record.Event, error) {
	for !s.ended {
		alive := s.Run.Alive() // before reading: what it wrote last is read then
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

// endUnrecorded is the end of a run whose journal could not take it, as its
// result has it; nil when the end was delivered or the run has no result. A
// subscriber that got no event may have asked for those beyond the end.
func (s *recordedSubscription) endUnrecorded() *record.Event {
	if s.ended || s.next == s.first && s.first > 1 {
		return nil
	}
	head, _, err := s.believed()
	if err != nil || head == nil || head.EndedAt == nil {
		return nil
	}
	return &record.Event{Seq: s.next, Time: *head.EndedAt, Type: record.End, Status: head.Status, Summary: head.Summary, Error: head.Error}
}

// read returns the next events at hand. The file is open only meanwhile, for
// nobody closes a subscription.
func (s *recordedSubscription) read(alive bool) ([]*record.Event, error) {
	r, err := s.Run.JournalFrom(s.mark)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	end := int64(0)
	if !alive { // what is damaged at the end stays so
		end = allThere
	}
	files := &Trials{Run: s.Run}
	defer files.Close()
	events, mark, err := ReadEvents(r, files, s.next, end, func(number int64) (bool, error) {
		if number > s.resumed { // the end, for all that is known: is there something after it?
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
