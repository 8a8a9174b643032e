// Package replay computes the state of a run from its recorded events. Call [Open] for an
// earlier run, [NewFold] to follow the events of a run as they are recorded, [StateOf] for the
// state of any run, and [NewFollower] to display a run from its subscription. No other package
// folds events: a [TrialVisitor] sees the trials that a fold counts, and [RecordedRun.ReadPast] reports
// what all run sessions spent.
package replay

import (
	"bytes"
	"cmp"
	"errors"
	"hash/maphash"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"waza/runner/journal"
	"waza/runner/record"
)

// Place is the position of a trial's result in the journal, and its verdict. A run keeps nothing
// else in memory of an ended trial, except its slot in a slice.
type Place struct {
	Off     int64
	Size    int32 // 0 without a trial
	Verdict verdictCode
	stored  bool // the trial refers to contents in other files
	// the trial is in result.json, because the journal lost it
	inResult bool
	// sum is the hash of the trial when its line was verified. A program that changes the file
	// later cannot compute it, because its seed never leaves this process.
	sum uint64
}

var placeSeed = maphash.MakeSeed()

// verdictCode is a verdict in a byte.
type verdictCode uint8

var verdictCodes = [...]record.Verdict{
	"", record.Passed, record.Failed, record.Errored, record.TimedOut, record.Cancelled, record.Skipped,
	record.NeedsReview,
}

// CodeOf returns the code of a verdict.
func CodeOf(v record.Verdict) verdictCode {
	return verdictCode(max(0, slices.Index(verdictCodes[:], v)))
}

func (c verdictCode) Verdict() record.Verdict { return verdictCodes[c] }

// lastMember returns the place of the value of a line's last member. Its bytes end just before
// the brace.
func lastMember(line, value []byte) Place {
	return Place{
		Off: int64(len(line) - 1 - len(value)), Size: int32(len(value)), stored: bytes.HasPrefix(value, []byte(storedHead)),
		sum: maphash.Bytes(placeSeed, value),
	}
}

// TaskFold is the state of one task.
type TaskFold struct {
	Result *record.Task // nil until the task has ended
	Trials []Place      // by trial number, from the task's first
	shared bool         // another state has the same Trials, so they must not change
}

// own returns the places of the trials for changes.
func (t *TaskFold) own() []Place {
	if t.shared {
		t.Trials, t.shared = slices.Clone(t.Trials), false
	}
	return t.Trials
}

// State is the state of a run according to its events. Tasks are those of the record. Events
// find their task by its id, because the tasks of a resumed run may differ from before.
type State struct {
	counts
	Clock    clock
	Resumed  int // number of times that the run was resumed
	Tasks    []TaskFold
	Criteria *record.Criteria // criteria of the last amendment; nil means those of the record
	Amended  *amended         // amendment that has not taken effect; nil without one
	// Prompts are the prompts that a model proposed, in all run sessions.
	Prompts []record.Prompt
	// Earlier contains the places of trials that an amendment replaced, oldest first.
	Earlier map[TrialKey][]Place
	// Judged contains the answers of judges after the trials of a run of kind judge.
	Judged Judged

	lines int64 // number of lines of the journal, including lost ones
	lossy bool  // some are lost
	// Unverifiable describes why the journal cannot be verified; empty when it can.
	Unverifiable string
}

// amended holds the changes of an amendment until it takes effect.
type amended struct {
	trials map[TrialKey]Place
	Tasks  map[int]*record.Task
}

// TrialKey identifies a trial by the indexes of its task and of itself.
type TrialKey struct{ Task, Trial int32 }

// KeyOf returns the key of a trial, from its index and that of its task.
func KeyOf(task, trial int) TrialKey { return TrialKey{int32(task), int32(trial)} }

// clock sums the durations of the run sessions, each from its first event to its last.
type clock struct {
	ran           time.Duration // duration of the earlier sessions
	started, Last time.Time     // of the current session; zero before its first event
}

func (c *clock) tick(at time.Time) {
	if c.started.IsZero() {
		c.started = at
	}
	c.Last = at
}

// Total returns the duration of all sessions.
func (c *clock) Total() time.Duration { return c.ran + max(0, c.Last.Sub(c.started)) }

// restart starts another session.
func (c *clock) restart(at time.Time) { c.ran, c.started, c.Last = c.Total(), at, at }

// A TrialVisitor sees each trial that a [Fold] counts, once, with the index of its task. It
// collects what a state does not hold of a trial.
type TrialVisitor interface {
	AddTrial(task int, t *record.Trial)
}

// A Fold computes the state of a run from its events while they are recorded. It owns the state
// and the lock that guards it, and its visitor. It is safe for concurrent use.
type Fold struct {
	mu     sync.RWMutex // guards the fields below
	state  *State
	trials TrialVisitor // nil when nobody looks at the trials
}

// NewFold returns a fold that continues from a state, which it owns. The visitor, which may be
// nil, sees the trials that are applied from now on. The fold calls it while it is locked.
func NewFold(st *State, trials TrialVisitor) *Fold { return &Fold{state: st, trials: trials} }

// NewState returns the state of a run without events.
func NewState(rec *record.Run) *State {
	s := &State{counts: newCounts(rec), Tasks: make([]TaskFold, len(rec.Tasks))}
	for i, t := range rec.Tasks {
		s.Tasks[i].Trials = make([]Place, t.Trials)
	}
	return s
}

// Apply processes recorded events. places contains the place of the trial of each event.
func (f *Fold) Apply(events []*record.Event, places []Place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, e := range events {
		f.state.Apply(e, places[i])
		if f.trials == nil || e.Type != record.TrialComplete || e.Trial == nil {
			continue
		}
		if key, ok := f.state.key(e); ok {
			f.trials.AddTrial(int(key.Task), e.Trial)
		}
	}
}

// View calls read with the state while the fold is locked, so that the state and the visitor's
// view of the trials agree. read must not change the state, or keep it.
func (f *Fold) View(read func(st *State)) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	read(f.state)
}

// Apply adds an event to the state. at is the place of its trial, if it has one.
func (s *State) Apply(e *record.Event, at Place) {
	if e.Type.Amends() {
		s.amend(e, at)
		return
	}
	s.Progress.Seq = e.Seq
	if e.Type == record.RunResumed {
		s.resume(e)
		return
	}
	s.Clock.tick(e.Time)
	switch e.Type {
	case record.TrialComplete:
		if key, ok := s.key(e); ok {
			at.Verdict = CodeOf(e.Verdict)
			s.put(key, at)
		}
	case record.TaskComplete:
		if i := s.index(e); i >= 0 {
			s.putResult(i, e.Task)
		}
	case record.PromptProposed:
		if e.Prompt != nil {
			s.Prompts = append(s.Prompts, *e.Prompt)
		}
	case record.CompareStart, record.CompareComplete, record.JudgeComplete:
		s.Judged.apply(e)
	case record.DecideProgress:
		s.Progress.Deciding = e.Deciding
	case record.End:
		s.end(e)
	}
}

// put sets the place of a trial. It counts the trial once, however often it is recorded.
func (s *State) put(key TrialKey, at Place) {
	slot := &s.Tasks[key.Task].own()[key.Trial]
	s.countTrial(s.rec.Tasks[key.Task].Role, slot.Verdict.Verdict(), at.Verdict.Verdict())
	*slot = at
}

// putResult does the same for a task. A nil result means that the task has not ended.
func (s *State) putResult(task int, res *record.Task) {
	t := &s.Tasks[task]
	s.countTask(s.rec.Tasks[task].Role, verdictOf(t.Result), verdictOf(res))
	t.Result = res
}

// resume processes the event that starts another run session. It drops trials that are not kept,
// and the end of the previous session.
func (s *State) resume(e *record.Event) {
	s.Clock.restart(e.Time)
	s.Resumed++
	s.Reopen()
	s.KeepOnly(e.Kept)
}

// KeepOnly drops all trials except kept, and the results of tasks that lost a trial.
func (s *State) KeepOnly(kept map[string][]record.TrialRange) {
	s.Judged.keepOnly(s.rec, kept)
	for i := range s.Tasks {
		ref := &s.rec.Tasks[i]
		whole := true
		for j, at := range s.Tasks[i].Trials {
			if at.Size > 0 && !contains(kept[ref.ID], ref.First+j) {
				key := TrialKey{int32(i), int32(j)}
				s.put(key, Place{})
				delete(s.Earlier, key)
			}
			whole = whole && s.Tasks[i].Trials[j].Size > 0
		}
		if res := s.Tasks[i].Result; res != nil && !(whole && res.Trials.Total == ref.Trials) {
			s.putResult(i, nil)
		}
	}
}

// Reopen drops the end of the run, and an incomplete amendment.
func (s *State) Reopen() {
	s.reopen()
	s.Amended, s.Criteria = nil, nil
}

// contains reports whether a trial is in one of the ranges, which are sorted.
func contains(ranges []record.TrialRange, num int) bool {
	i, found := slices.BinarySearchFunc(ranges, num, func(r record.TrialRange, num int) int { return cmp.Compare(r[0], num) })
	return found || i > 0 && num <= ranges[i-1][1]
}

// amend processes an event of an amendment. Its changes are stored separately until the last
// event of the amendment, so that a run is in the state before or after it.
func (s *State) amend(e *record.Event, at Place) {
	if s.Amended == nil {
		s.Amended = &amended{trials: map[TrialKey]Place{}, Tasks: map[int]*record.Task{}}
	}
	switch key, ok := s.key(e); {
	case e.Type == record.TrialGraded && ok:
		s.remember(key)
		at.Verdict = CodeOf(e.Verdict)
		s.Amended.trials[key] = at
	case e.Type == record.TaskGraded && key.Task >= 0:
		s.Amended.Tasks[int(key.Task)] = e.Task
	case e.Type == record.RunGraded:
		s.commit(e)
	}
}

// remember stores the place of a trial that is about to be replaced.
func (s *State) remember(key TrialKey) {
	at := s.Place(key)
	if at.Size == 0 {
		return
	}
	if s.Earlier == nil {
		s.Earlier = map[TrialKey][]Place{}
	}
	s.Earlier[key] = append(s.Earlier[key], at)
}

// Place returns the place of a trial, including amendments that have not taken effect. It
// returns the zero Place when the trial has not ended.
func (s *State) Place(key TrialKey) Place {
	if s.Amended != nil {
		if at, ok := s.Amended.trials[key]; ok {
			return at
		}
	}
	return s.Tasks[key.Task].Trials[key.Trial]
}

func (s *State) commit(e *record.Event) {
	s.Adopt()
	s.Criteria = e.Criteria
	s.amended(e)
}

// Adopt makes the changes of the present amendment effective before its last event, which
// contains a summary of them. Without an amendment, it does nothing.
func (s *State) Adopt() {
	if s.Amended == nil {
		return
	}
	for key, at := range s.Amended.trials {
		s.put(key, at)
	}
	for i, res := range s.Amended.Tasks {
		s.putResult(i, res)
	}
	s.Amended = nil
}

// key finds the trial of an event. Without a trial, the task of the key is still valid, or -1
// when the record has no such task.
func (s *State) key(e *record.Event) (TrialKey, bool) {
	i := s.index(e)
	if i < 0 {
		return TrialKey{-1, -1}, false
	}
	n := e.TrialNum - s.rec.Tasks[i].First
	return TrialKey{int32(i), int32(n)}, n >= 0 && n < len(s.Tasks[i].Trials)
}

// adopt adds the end of the run from a result when the journal could not record it. head may be
// nil.
func (s *State) adopt(head *resultHead) {
	p := &s.Progress
	if head == nil || head.EndedAt == nil || p.EndedAt != nil {
		return
	}
	p.Status, p.EndedAt, p.Error = head.Status, head.EndedAt, head.Error
	p.Summary = cmp.Or(p.Summary, head.Summary)
}

// stored reports whether trials refer to contents in other files.
func (s *State) stored() bool {
	for i := range s.Tasks {
		if slices.ContainsFunc(s.Tasks[i].Trials, func(at Place) bool { return at.stored }) {
			return true
		}
	}
	return false
}

// EndedTrials counts the ended trials of a task. Its Total does not include the others.
func (s *State) EndedTrials(task int) (n record.Counts) {
	for _, at := range s.Tasks[task].Trials {
		if at.Verdict != 0 {
			n.Total++
			n.Add(at.Verdict.Verdict())
		}
	}
	return n
}

// Results returns the results of the tasks, nil for those that have none yet.
func (s *State) Results() []*record.Task {
	list := make([]*record.Task, len(s.Tasks))
	for i, t := range s.Tasks {
		list[i] = t.Result
	}
	return list
}

// Place returns the place of a trial; the zero Place when it has not ended.
func (f *Fold) Place(key TrialKey) Place {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.Tasks[key.Task].Trials[key.Trial]
}

// Progress returns the state without the trials.
func (f *Fold) Progress() record.Progress {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.Progress
}

// Snapshot returns a copy of the state.
func (f *Fold) Snapshot() *State {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.state.Tasks {
		t := &f.state.Tasks[i]
		t.shared = t.shared || t.Result != nil
	}
	return f.state.clone()
}

// clone returns a copy. It shares the places of ended tasks, which hardly ever change and are most
// of the memory of a long run. The caller must not change these in s.
func (s *State) clone() *State {
	c := *s
	c.ids = nil // filled when needed
	c.Tasks, c.Prompts, c.Judged, c.Earlier = slices.Clone(s.Tasks), slices.Clone(s.Prompts), s.Judged.clone(), maps.Clone(s.Earlier)
	for i := range c.Tasks {
		if t := &c.Tasks[i]; t.Result != nil {
			t.shared = true
		} else {
			t.Trials, t.shared = slices.Clone(t.Trials), false
		}
	}
	for key, places := range c.Earlier {
		c.Earlier[key] = slices.Clone(places)
	}
	if s.Amended != nil {
		c.Amended = &amended{maps.Clone(s.Amended.trials), maps.Clone(s.Amended.Tasks)}
	}
	return &c
}

// Refold computes the state of a recorded run from its journal. It skips damaged lines: a trial
// in one has not ended.
func Refold(run *journal.Run, rec *record.Run) (*State, error) {
	return refold(run, rec, newChecker(nil, nil))
}

// refold is like [Refold], and checks the journal.
func refold(run *journal.Run, rec *record.Run, check *checker) (*State, error) {
	alive := run.Alive() // before reading, so that the last lines are read
	st, err := foldJournal(run, rec, check, nil)
	if err != nil {
		return nil, err
	}
	if st.Progress.EndedAt == nil && !alive {
		st.Progress.Status = record.StatusInterrupted
	}
	return st, nil
}

// foldJournal is like [foldLines] for all lines of a run, which need not be locked.
func foldJournal(run *journal.Run, rec *record.Run, check *checker, visit eventVisitor) (*State, error) {
	r, err := run.Journal()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return foldLines(r, rec, check, visit)
}

// An eventVisitor sees each event of a journal with the JSON of its trial. Both are valid until it
// returns.
type eventVisitor func(e *record.Event, trial []byte)

// foldLines computes the state of a run from all lines of its journal, checks them, and calls visit,
// which can be nil, for each event.
func foldLines(r *journal.Reader, rec *record.Run, check *checker, visit eventVisitor) (*State, error) {
	st := NewState(rec)
	var l Lifter
	r.ReadAhead()
	for {
		line, number, off, err := check.next(r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		st.lossy = st.lossy || number != st.lines+1
		st.lines = number
		e, trial, err := l.Lift(line)
		if err != nil {
			continue
		}
		e.Seq = number
		if visit != nil {
			visit(e, line[trial.Off:trial.Off+int64(trial.Size)])
		}
		if trial.Size > 0 {
			trial.Off += off
		}
		st.Apply(e, trial)
	}
	st.lossy = st.lossy || r.Last() != st.lines
	st.lines, st.Unverifiable = r.Last(), r.Unverifiable()
	if st.Resumed < rec.Resumed {
		st.Reopen() // a process that was about to resume the run only wrote the record
	}
	return st, nil
}
