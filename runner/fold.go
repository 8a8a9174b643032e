package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"waza/runner/journal"
)

// Progress is the state of a run as its recorded events tell it.
type Progress struct {
	Status    Status     `json:"status"`
	Seq       int64      `json:"seq"` // of the last event; 0 when it is read from the result of a run that has ended
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt"`
	// Tasks and Trials count what has ended so far, of the tasks of the suite.
	Tasks  Counts `json:"tasks"`
	Trials Counts `json:"trials"`
	// Summary is nil until the run has completed.
	Summary *Summary `json:"summary,omitempty"`
	Error   string   `json:"error,omitempty"`
	// AmendedAt is when the record was last changed after the run; nil when it never was.
	AmendedAt *time.Time `json:"amendedAt,omitempty"`
}

// place is where a trial's result stands in the journal. Together with a slot
// in a slice it is all that a run keeps in memory of a trial that has ended.
type place struct {
	off  int64
	size int32
}

type taskFold struct {
	result *TaskResult // nil until the task has ended
	trials []place     // by trial number, from the task's first
}

type foldState struct {
	progress Progress
	tasks    []taskFold
	criteria *Criteria // of the last amendment; nil means the record's
	amended  *amended  // what has not taken effect yet; nil when there is none
	// earlier are the places of trials that an amendment replaced, oldest first.
	earlier map[trialKey][]place
}

// amended is what an amendment changes, until it takes effect.
type amended struct {
	trials map[trialKey]place
	tasks  map[int]*TaskResult
}

// trialKey names a trial by the indexes of its task and of itself.
type trialKey struct{ task, trial int32 }

// fold derives the state of a run from its events. It is safe for concurrent use.
type fold struct {
	rec *Record

	mu    sync.RWMutex // guards state
	state foldState
}

func newFold(rec *Record) *fold {
	f := &fold{rec: rec}
	f.state.progress = Progress{Status: StatusRunning, StartedAt: rec.CreatedAt}
	f.state.tasks = make([]taskFold, len(rec.Tasks))
	for i, t := range rec.Tasks {
		f.state.tasks[i].trials = make([]place, t.Trials)
		if t.Role == RoleTask {
			f.state.progress.Tasks.Total++
			f.state.progress.Trials.Total += t.Trials
		}
	}
	return f
}

// apply takes recorded events; places tells where the trial of each stands.
func (f *fold) apply(events []*Event, places []place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, e := range events {
		f.state.apply(e, places[i], f.rec)
	}
}

func (s *foldState) apply(e *Event, at place, rec *Record) {
	p := &s.progress
	if e.Type.amends() {
		s.amend(e, at, rec)
		return
	}
	p.Seq = e.Seq
	switch e.Type {
	case TrialComplete:
		if e.Role == RoleTask {
			p.Trials.Add(e.Verdict)
		}
		if key, ok := s.key(e, rec); ok {
			s.tasks[key.task].trials[key.trial] = at
		}
	case TaskComplete:
		if e.Role == RoleTask {
			p.Tasks.Add(e.Verdict)
		}
		if t := s.task(e); t != nil {
			t.result = e.Task
		}
	case RunComplete:
		p.Summary = e.Summary
	case End:
		ended := e.Time
		p.Status, p.Error, p.EndedAt = e.Status, e.Error, &ended
	}
}

// amend takes an event of an amendment. What it changes is kept apart until the
// last event of the amendment, so that a run is as before or as after it.
func (s *foldState) amend(e *Event, at place, rec *Record) {
	if s.amended == nil {
		s.amended = &amended{trials: map[trialKey]place{}, tasks: map[int]*TaskResult{}}
	}
	switch key, ok := s.key(e, rec); {
	case e.Type == TrialGraded && ok:
		s.remember(key)
		s.amended.trials[key] = at
	case e.Type == TaskGraded && s.task(e) != nil:
		s.amended.tasks[e.TaskNum-1] = e.Task
	case e.Type == RunGraded:
		s.commit(e)
	}
}

// remember keeps the place of a trial that is about to be replaced.
func (s *foldState) remember(key trialKey) {
	at := s.place(key)
	if at.size == 0 {
		return
	}
	if s.earlier == nil {
		s.earlier = map[trialKey][]place{}
	}
	s.earlier[key] = append(s.earlier[key], at)
}

// place finds a trial, as replaced by an amendment that has not taken effect; the
// zero place when it has not ended.
func (s *foldState) place(key trialKey) place {
	if s.amended != nil {
		if at, ok := s.amended.trials[key]; ok {
			return at
		}
	}
	return s.tasks[key.task].trials[key.trial]
}

func (s *foldState) commit(e *Event) {
	for key, at := range s.amended.trials {
		s.tasks[key.task].trials[key.trial] = at
	}
	for i, res := range s.amended.tasks {
		s.tasks[i].result = res
	}
	s.amended = nil
	s.criteria = e.Criteria
	if p := &s.progress; e.Summary != nil {
		tasks, trials := p.Tasks.Total, p.Trials.Total // the summary's are of what has ended
		p.Summary, p.Tasks, p.Trials = e.Summary, e.Summary.Counts, e.Summary.Trials.Counts
		p.Tasks.Total, p.Trials.Total = tasks, trials
		p.AmendedAt = &e.Time
	}
}

// key finds the trial of an event.
func (s *foldState) key(e *Event, rec *Record) (trialKey, bool) {
	t := s.task(e)
	if t == nil {
		return trialKey{}, false
	}
	n := e.TrialNum - rec.Tasks[e.TaskNum-1].First
	return trialKey{int32(e.TaskNum - 1), int32(n)}, n >= 0 && n < len(t.trials)
}

func (s *foldState) task(e *Event) *taskFold {
	if e.TaskNum < 1 || e.TaskNum > len(s.tasks) {
		return nil
	}
	return &s.tasks[e.TaskNum-1]
}

func (s *foldState) results() []*TaskResult {
	list := make([]*TaskResult, len(s.tasks))
	for i, t := range s.tasks {
		list[i] = t.result
	}
	return list
}

// progress returns the state without the trials.
func (f *fold) progress() Progress {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.progress
}

// snapshot copies the state.
func (f *fold) snapshot() *foldState {
	f.mu.RLock()
	defer f.mu.RUnlock()
	st := &foldState{progress: f.state.progress, criteria: f.state.criteria, tasks: make([]taskFold, len(f.state.tasks))}
	for i, t := range f.state.tasks {
		st.tasks[i] = taskFold{result: t.result, trials: append([]place(nil), t.trials...)}
	}
	return st
}

// visitTrials lifts the trials of a state out of the journal, one after the other.
func visitTrials(run *journal.Run, st *foldState, visit func(task int, t *TrialResult) error) error {
	f, err := openJournal(run)
	if err != nil {
		return err
	}
	defer f.Close()
	for i := range st.tasks {
		for _, at := range st.tasks[i].trials {
			if at.size == 0 {
				continue // not ended
			}
			t := new(TrialResult)
			if err := at.decode(f, t); err != nil {
				return err
			}
			if err := visit(i, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// decode reads what is at the place.
func (at place) decode(journal io.ReaderAt, v any) error {
	b := make([]byte, at.size)
	if _, err := journal.ReadAt(b, at.off); err != nil {
		return fmt.Errorf("journal: a trial: %w", err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("journal: a trial: %w", err)
	}
	return nil
}

// DamagedError says that a journal holds a line that is no event.
type DamagedError struct {
	Line int64
	Err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("journal: line %d is damaged: %v", e.Line, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// refold rebuilds the state of a recorded run from its journal. Damaged lines
// are left out.
func refold(run *journal.Run, rec *Record) (*foldState, error) {
	alive := run.Alive() // before reading: what it wrote last is read then
	f := newFold(rec)
	r, err := run.Journal()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		line, _, off, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		e, trial, err := splitEvent(line)
		if err != nil {
			continue
		}
		if trial.size > 0 {
			trial.off += off
		}
		f.state.apply(e, trial, rec)
	}
	if f.state.progress.EndedAt == nil && !alive {
		f.state.progress.Status = StatusInterrupted
	}
	return &f.state, nil
}

// splitEvent decodes an event but for its trial, and finds that in the line.
func splitEvent(line []byte) (*Event, place, error) {
	var e struct {
		Event
		Trial json.RawMessage `json:"trial"`
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, place{}, err
	}
	if len(e.Trial) == 0 {
		return &e.Event, place{}, nil
	}
	// The trial is the last member, so its bytes end just before the brace.
	return &e.Event, place{off: int64(len(line) - 1 - len(e.Trial)), size: int32(len(e.Trial))}, nil
}

// readRecord reads run.json.
func readRecord(run *journal.Run) (*Record, error) {
	b, err := run.Request()
	if err != nil {
		return nil, err
	}
	rec := new(Record)
	if err := json.Unmarshal(b, rec); err != nil {
		return nil, fmt.Errorf("%s: run.json: %w", run.Dir(), err)
	}
	return rec, nil
}

// openJournal opens the file that places refer to.
func openJournal(run *journal.Run) (*os.File, error) { return os.Open(run.JournalPath()) }
