package runner

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
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

// place is where a trial's result stands in the journal, and its verdict. Together
// with a slot in a slice it is all that a run keeps in memory of a trial that has
// ended.
type place struct {
	off     int64
	size    int32 // 0 when there is no trial
	verdict verdictCode
	stored  bool // it refers to contents that are elsewhere
	// inResult: it is in result.json, because the journal lost it.
	inResult bool
}

// verdictCode is a verdict in a byte.
type verdictCode uint8

var verdictCodes = [...]Verdict{"", Passed, Failed, Errored, TimedOut, Cancelled, Skipped, NeedsReview}

func codeOf(v Verdict) verdictCode { return verdictCode(max(0, slices.Index(verdictCodes[:], v))) }

func (c verdictCode) verdict() Verdict { return verdictCodes[c] }

// lastMember is the place of the value of a line's last member: its bytes end just
// before the brace.
func lastMember(line, value []byte) place {
	return place{off: int64(len(line) - 1 - len(value)), size: int32(len(value)), stored: bytes.HasPrefix(value, []byte(storedHead))}
}

type taskFold struct {
	result *TaskResult // nil until the task has ended
	trials []place     // by trial number, from the task's first
}

// foldState is the state of a run as its events tell it. Tasks are those of the
// record; events find theirs by its id, for a run that is taken up again may have
// others than before.
type foldState struct {
	rec      *Record
	ids      map[string]int // indexes of tasks; nil until one is looked for
	progress Progress
	clock    clock
	resumed  int // how often the run was taken up again
	tasks    []taskFold
	criteria *Criteria // of the last amendment; nil means the record's
	amended  *amended  // what has not taken effect yet; nil when there is none
	// earlier are the places of trials that an amendment replaced, oldest first.
	earlier map[trialKey][]place

	lines int64 // of the journal, lost ones included
	lossy bool  // some are lost
}

// amended is what an amendment changes, until it takes effect.
type amended struct {
	trials map[trialKey]place
	tasks  map[int]*TaskResult
}

// trialKey names a trial by the indexes of its task and of itself.
type trialKey struct{ task, trial int32 }

// keyOf is the key of a trial by its index and that of its task.
func keyOf(task, trial int) trialKey { return trialKey{int32(task), int32(trial)} }

// clock adds up how long the sessions of a run took, each from its first event to
// its last.
type clock struct {
	ran         time.Duration // of the sessions before
	began, last time.Time     // of this one; zero before its first event
}

func (c *clock) tick(at time.Time) {
	if c.began.IsZero() {
		c.began = at
	}
	c.last = at
}

// total is how long all sessions took.
func (c *clock) total() time.Duration { return c.ran + max(0, c.last.Sub(c.began)) }

// restart begins another session.
func (c *clock) restart(at time.Time) { c.ran, c.began, c.last = c.total(), at, at }

// fold derives the state of a run from its events. It is safe for concurrent use.
type fold struct {
	mu    sync.RWMutex // guards state
	state foldState
}

func newFold(rec *Record) *fold { return &fold{state: newFoldState(rec)} }

func newFoldState(rec *Record) foldState {
	s := foldState{rec: rec, tasks: make([]taskFold, len(rec.Tasks))}
	s.progress = Progress{Status: StatusRunning, StartedAt: rec.CreatedAt}
	for i, t := range rec.Tasks {
		s.tasks[i].trials = make([]place, t.Trials)
		if t.Role == RoleTask {
			s.progress.Tasks.Total++
			s.progress.Trials.Total += t.Trials
		}
	}
	return s
}

// apply takes recorded events; places tells where the trial of each stands.
func (f *fold) apply(events []*Event, places []place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, e := range events {
		f.state.apply(e, places[i])
	}
}

func (s *foldState) apply(e *Event, at place) {
	if e.Type.amends() {
		s.amend(e, at)
		return
	}
	p := &s.progress
	p.Seq = e.Seq
	if e.Type == RunResumed {
		s.resume(e)
		return
	}
	s.clock.tick(e.Time)
	switch e.Type {
	case TrialComplete:
		if key, ok := s.key(e); ok {
			at.verdict = codeOf(e.Verdict)
			s.put(key, at)
		}
	case TaskComplete:
		if i := s.index(e); i >= 0 {
			s.putResult(i, e.Task)
		}
	case RunComplete:
		p.Summary = e.Summary
	case End:
		ended := e.Time
		p.Status, p.Error, p.EndedAt = e.Status, e.Error, &ended
	}
}

// put sets the place of a trial, and counts it once however often it is recorded.
func (s *foldState) put(key trialKey, at place) {
	slot := &s.tasks[key.task].trials[key.trial]
	if s.rec.Tasks[key.task].Role == RoleTask {
		s.progress.Trials.remove(slot.verdict.verdict())
		s.progress.Trials.Add(at.verdict.verdict())
	}
	*slot = at
}

// putResult does the same for a task; nil means that it has not ended.
func (s *foldState) putResult(task int, res *TaskResult) {
	t := &s.tasks[task]
	if s.rec.Tasks[task].Role == RoleTask {
		if t.result != nil {
			s.progress.Tasks.remove(t.result.Verdict)
		}
		if res != nil {
			s.progress.Tasks.Add(res.Verdict)
		}
	}
	t.result = res
}

// resume takes the event that begins another session of the run: what it does not
// keep, and what was told of the end of the one before, counts no more.
func (s *foldState) resume(e *Event) {
	s.clock.restart(e.Time)
	s.resumed++
	s.reopen()
	s.keepOnly(e.Kept)
}

// keepOnly drops all trials but those, and the results of tasks that are not whole
// any more.
func (s *foldState) keepOnly(kept map[string][]TrialRange) {
	for i := range s.tasks {
		ref := &s.rec.Tasks[i]
		whole := true
		for j, at := range s.tasks[i].trials {
			if at.size > 0 && !keeps(kept[ref.ID], ref.First+j) {
				key := trialKey{int32(i), int32(j)}
				s.put(key, place{})
				delete(s.earlier, key)
			}
			whole = whole && s.tasks[i].trials[j].size > 0
		}
		if res := s.tasks[i].result; res != nil && !(whole && res.Trials.Total == ref.Trials) {
			s.putResult(i, nil)
		}
	}
}

// reopen forgets what was told of the end of the run, and what an amendment that
// was cut short would have changed.
func (s *foldState) reopen() {
	p := &s.progress
	p.Status, p.Error, p.EndedAt, p.Summary, p.AmendedAt = StatusRunning, "", nil, nil, nil
	s.amended, s.criteria = nil, nil
}

// keeps reports whether a trial is in one of the ranges, which are in order.
func keeps(ranges []TrialRange, num int) bool {
	i, found := slices.BinarySearchFunc(ranges, num, func(r TrialRange, num int) int { return cmp.Compare(r[0], num) })
	return found || i > 0 && num <= ranges[i-1][1]
}

// amend takes an event of an amendment. What it changes is kept apart until the
// last event of the amendment, so that a run is as before or as after it.
func (s *foldState) amend(e *Event, at place) {
	if s.amended == nil {
		s.amended = &amended{trials: map[trialKey]place{}, tasks: map[int]*TaskResult{}}
	}
	switch key, ok := s.key(e); {
	case e.Type == TrialGraded && ok:
		s.remember(key)
		at.verdict = codeOf(e.Verdict)
		s.amended.trials[key] = at
	case e.Type == TaskGraded && key.task >= 0:
		s.amended.tasks[int(key.task)] = e.Task
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
		s.put(key, at)
	}
	for i, res := range s.amended.tasks {
		s.putResult(i, res)
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

// key finds the trial of an event. Where there is none, its task is still right, or
// -1 when the record has no such task.
func (s *foldState) key(e *Event) (trialKey, bool) {
	i := s.index(e)
	if i < 0 {
		return trialKey{-1, -1}, false
	}
	n := e.TrialNum - s.rec.Tasks[i].First
	return trialKey{int32(i), int32(n)}, n >= 0 && n < len(s.tasks[i].trials)
}

// index finds the task of an event, or returns -1.
func (s *foldState) index(e *Event) int {
	if n := e.TaskNum - 1; n >= 0 && n < len(s.tasks) && s.rec.Tasks[n].ID == e.TaskID {
		return n
	}
	if s.ids == nil {
		s.ids = make(map[string]int, len(s.rec.Tasks))
		for i, t := range s.rec.Tasks {
			s.ids[t.ID] = i
		}
	}
	if i, ok := s.ids[e.TaskID]; ok {
		return i
	}
	return -1
}

// adopt takes from a result what the journal could not take: that the run ended.
// head may be nil.
func (s *foldState) adopt(head *resultHead) {
	p := &s.progress
	if head == nil || head.EndedAt == nil || p.EndedAt != nil {
		return
	}
	p.Status, p.EndedAt, p.Error = head.Status, head.EndedAt, head.Error
	p.Summary = cmp.Or(p.Summary, head.Summary)
}

// stored reports whether trials refer to contents that are elsewhere.
func (s *foldState) stored() bool {
	for i := range s.tasks {
		if slices.ContainsFunc(s.tasks[i].trials, func(at place) bool { return at.stored }) {
			return true
		}
	}
	return false
}

func (s *foldState) results() []*TaskResult {
	list := make([]*TaskResult, len(s.tasks))
	for i, t := range s.tasks {
		list[i] = t.result
	}
	return list
}

// place finds a trial; the zero place when it has not ended.
func (f *fold) place(key trialKey) place {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.tasks[key.task].trials[key.trial]
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
	st := &foldState{rec: f.state.rec, progress: f.state.progress, criteria: f.state.criteria, tasks: make([]taskFold, len(f.state.tasks))}
	for i, t := range f.state.tasks {
		st.tasks[i] = taskFold{result: t.result, trials: append([]place(nil), t.trials...)}
	}
	return st
}

// visitTrials lifts the trials of a state out of the journal, one after the other,
// as far as T has members for what is known of them.
func visitTrials[T any](run *journal.Run, st *foldState, visit func(task int, t *T) error) error {
	f, err := openTrials(run)
	if err != nil {
		return err
	}
	defer f.Close()
	for i := range st.tasks {
		for _, at := range st.tasks[i].trials {
			if at.size == 0 {
				continue // not ended
			}
			t := new(T)
			if err := f.decode(at, t); err != nil {
				return err
			}
			if err := visit(i, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// refold rebuilds the state of a recorded run from its journal. What damaged lines
// held is left out: a trial that stood in one has not ended.
func refold(run *journal.Run, rec *Record) (*foldState, error) {
	alive := run.Alive() // before reading: what it wrote last is read then
	st, err := foldJournal(run, rec)
	if err != nil {
		return nil, err
	}
	if st.progress.EndedAt == nil && !alive {
		st.progress.Status = StatusInterrupted
	}
	return st, nil
}

// foldJournal makes the state of a run from its journal, the lines of which are
// known to be whole: they need not be decoded to find out.
func foldJournal(run *journal.Run, rec *Record) (*foldState, error) {
	st := newFoldState(rec)
	var l lifter
	r, err := run.Journal()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		line, number, off, err := r.NextWhole()
		if errors.Is(err, io.EOF) {
			st.lossy = st.lossy || r.Last() != st.lines
			st.lines = r.Last()
			break
		}
		if err != nil {
			return nil, err
		}
		st.lossy = st.lossy || number != st.lines+1
		st.lines = number
		e, trial, err := l.lift(line)
		if err != nil {
			continue
		}
		e.Seq = number
		if trial.size > 0 {
			trial.off += off
		}
		st.apply(e, trial)
	}
	if st.resumed < rec.Resumed {
		st.reopen() // whoever was about to take it up came no further than the record
	}
	return &st, nil
}
