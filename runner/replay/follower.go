package replay

import (
	"time"

	"waza/runner/record"
)

// A Follower is the state of a run that a subscriber can display: running tasks and trials, and
// the numbers of those that have ended. Make it with [NewFollower] and call Apply with every
// event of a subscription. It needs a few bytes per task and nothing per ended trial. It is not
// safe for concurrent use.
//
// A Follower does not store the verdicts of single trials. Its counts of trials therefore
// restart when the run is resumed; Kept is the number of trials from earlier run sessions.
type Follower struct {
	counts
	Running Running
	Started time.Time // when the run session started
	Kept    int       // trials of all roles from earlier run sessions
	kept    int       // those of the suite's tasks
	Cached  int       // trials of this run session that were reused from other runs
	// Comparing counts the comparisons that a run of kind judge makes, including earlier run
	// sessions.
	Comparing record.Comparing
	tasks     []outcome
	keeps     bool           // whether the two fields below are kept
	results   []*record.Task // by index; nil for tasks that have not ended
	prompts   []record.Prompt
}

// outcome is the state of a task in a follower.
type outcome struct {
	verdict verdictCode // 0 until the task has ended
	whole   bool        // the verdict covers all of its trials
}

// NewFollower returns the state of a run before its first event. earlier contains the results,
// by task index, of tasks that ended before the first event that the follower will receive; it
// may be nil.
func NewFollower(rec *record.Run, earlier []*record.Task) *Follower {
	f := &Follower{counts: newCounts(rec), Running: Running{}, Started: rec.CreatedAt, tasks: make([]outcome, len(rec.Tasks))}
	for i, res := range earlier {
		f.putTask(i, verdictOf(res), res)
	}
	return f
}

// ContinueFollower returns the state of a run that has come as far as st, or that of a run before
// its first event if st is nil. If results is set, the follower keeps the results of tasks and the
// proposed prompts, which takes some hundred bytes per task.
func ContinueFollower(rec *record.Run, st *State, results bool) *Follower {
	f := NewFollower(rec, nil)
	if f.keeps = results; f.keeps {
		f.results = make([]*record.Task, len(rec.Tasks))
	}
	if st == nil {
		return f
	}
	for i := range min(len(rec.Tasks), len(st.Tasks)) {
		res := st.Tasks[i].Result
		f.putTask(i, verdictOf(res), res)
	}
	f.counts = st.counts
	f.rec, f.ids = rec, nil
	if f.keeps {
		f.prompts = st.Prompts
	}
	return f
}

// Ended returns the number of trials of all roles that have ended, in all run sessions.
func (f *Follower) Ended() int { return f.Kept + f.AllTrials().Done() }

// Cases returns the number of trials of the suite's tasks that have ended, in all run sessions. It
// leaves out cancelled trials, because they run again when the run is resumed.
func (f *Follower) Cases() int {
	return f.kept + f.Progress.Trials.Done() - f.Progress.Trials.Cancelled
}

// Result returns the result of the task with that index, if the follower keeps results; nil when
// the task has not ended.
func (f *Follower) Result(task int) *record.Task { return f.results[task] }

// Prompt returns a proposed prompt, if the follower keeps results; nil when it is not proposed yet.
func (f *Follower) Prompt(generation, number int) *record.Prompt {
	for i := range f.prompts {
		if p := &f.prompts[i]; p.Generation == generation && p.Number == number {
			return p
		}
	}
	return nil
}

// Apply processes the next event of the run.
func (f *Follower) Apply(e *record.Event) {
	if !e.Type.Amends() {
		f.Progress.Seq = e.Seq
	}
	f.Running.Apply(e)
	switch e.Type {
	case record.RunStart:
		f.Started = e.Time
	case record.RunResumed:
		f.resume(e)
	case record.TrialComplete:
		f.countTrial(e.Role, "", e.Verdict)
		if e.Cached {
			f.Cached++
		}
	case record.TaskComplete:
		if i := f.index(e); i >= 0 {
			f.putTask(i, e.Verdict, e.Task)
		}
	case record.PromptProposed:
		if f.keeps && e.Prompt != nil && f.Prompt(e.Prompt.Generation, e.Prompt.Number) == nil {
			f.prompts = append(f.prompts, *e.Prompt)
		}
	case record.CompareStart, record.CompareComplete:
		f.Comparing.Total, f.Comparing.Done = e.Comparing.Total, max(f.Comparing.Done, e.Comparing.Done)
	case record.DecideProgress:
		f.Progress.Deciding = e.Deciding
	case record.End:
		f.end(e)
	case record.RunGraded:
		f.amended(e)
	}
}

// putTask records the result of a task. An empty verdict means that the task has not ended; res
// may be nil.
func (f *Follower) putTask(i int, v record.Verdict, res *record.Task) {
	ref := &f.rec.Tasks[i]
	f.countTask(ref.Role, f.tasks[i].verdict.Verdict(), v)
	f.tasks[i] = outcome{CodeOf(v), res != nil && res.Trials.Total == ref.Trials}
	if f.keeps {
		f.results[i] = res
	}
}

// resume processes the event that starts another run session.
func (f *Follower) resume(e *record.Event) {
	f.reopen()
	f.Started, f.Kept, f.kept, f.Cached, f.Comparing = e.Time, e.KeptTrials, 0, 0, record.Comparing{}
	for _, n := range []*record.Counts{&f.Progress.Trials, &f.baseline, &f.triggers} {
		*n = record.Counts{Total: n.Total}
	}
	for i := range f.tasks {
		ref, n := &f.rec.Tasks[i], 0
		for _, trials := range e.Kept[ref.ID] {
			n += trials[1] - trials[0] + 1
		}
		if ref.Role == record.RoleTask {
			f.kept += n
		}
		if n < ref.Trials || !f.tasks[i].whole {
			f.putTask(i, "", nil)
		}
	}
}
