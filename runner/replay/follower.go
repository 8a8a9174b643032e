package replay

import (
	"time"

	"waza/runner/record"
)

// Follower is the state of a run as far as a subscriber can show it: what runs, and
// how many tasks and trials have ended. Make it with [NewFollower] and give it, with
// Apply, every event that a subscription delivers. It holds a few bytes per task and
// nothing per trial that has ended. It is not safe for concurrent use.
//
// Because it does not know the verdicts of single trials, its counts of trials begin
// again when the run is taken up again; those of earlier sessions are in Kept.
type Follower struct {
	counts
	Running Running
	Began   time.Time // when the session began
	Kept    int       // trials of all roles that earlier sessions did
	Cached  int       // trials of this session that were taken over from other runs
	// Comparing is how many comparisons a run of the kind judge makes, and has made in this
	// session and those before.
	Comparing record.Comparing
	tasks     []outcome
}

// outcome is what a follower keeps of a task.
type outcome struct {
	verdict verdictCode // 0 until the task has ended
	whole   bool        // the verdict is of all of its trials
}

// NewFollower returns the state of a run of which no event is known. earlier are the
// results, by index of their task, that tasks have from before the first event that
// it will get; it may be nil.
func NewFollower(rec *record.Run, earlier []*record.Task) *Follower {
	f := &Follower{counts: newCounts(rec), Running: Running{}, Began: rec.CreatedAt, tasks: make([]outcome, len(rec.Tasks))}
	for i, res := range earlier {
		f.putTask(i, verdictOf(res), res)
	}
	return f
}

// Apply takes the next event of the run.
func (f *Follower) Apply(e *record.Event) {
	if !e.Type.Amends() {
		f.Progress.Seq = e.Seq
	}
	f.Running.Apply(e)
	switch e.Type {
	case record.RunStart:
		f.Began = e.Time
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

// putTask notes how a task ended. An empty verdict means that it has not; res may be
// nil.
func (f *Follower) putTask(i int, v record.Verdict, res *record.Task) {
	ref := &f.rec.Tasks[i]
	f.countTask(ref.Role, f.tasks[i].verdict.Verdict(), v)
	f.tasks[i] = outcome{CodeOf(v), res != nil && res.Trials.Total == ref.Trials}
}

// resume takes the event that begins another session of the run.
func (f *Follower) resume(e *record.Event) {
	f.reopen()
	f.Began, f.Kept, f.Cached, f.Comparing = e.Time, e.KeptTrials, 0, record.Comparing{}
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
