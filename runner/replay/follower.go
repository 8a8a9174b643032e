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
	Cached  int       // trials of this run session that were reused from other runs
	// Comparing counts the comparisons that a run of kind judge makes, including earlier run
	// sessions.
	Comparing record.Comparing
	tasks     []outcome
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
	case record.CompareStart, record.CompareComplete:
		f.Comparing.Total, f.Comparing.Done = e.Comparing.Total, max(f.Comparing.Done, e.Comparing.Done)
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
}

// resume processes the event that starts another run session.
func (f *Follower) resume(e *record.Event) {
	f.reopen()
	f.Started, f.Kept, f.Cached, f.Comparing = e.Time, e.KeptTrials, 0, record.Comparing{}
	for _, n := range []*record.Counts{&f.Progress.Trials, &f.baseline, &f.triggers} {
		*n = record.Counts{Total: n.Total}
	}
	for i := range f.tasks {
		ref, n := &f.rec.Tasks[i], 0
		for _, trials := range e.Kept[ref.ID] {
			n += trials[1] - trials[0] + 1
		}
		if n < ref.Trials || !f.tasks[i].whole {
			f.putTask(i, "", nil)
		}
	}
}
