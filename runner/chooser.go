package runner

import (
	"slices"

	"waza/runner/record"
	"waza/runner/tally"
)

// chooser lets the queue hand out only the trials that decide the question of the run, batch by
// batch:
//
//	chosen pairs start ─► all of them have ended ─► the evidence chooses the next pairs … ─► end
//
// The lock of the queue guards it.
type chooser struct {
	deciding *tally.Deciding
	tasks    []*taskRun
	ready    []tally.PairedTrial        // chosen trials that were not handed out
	open     map[tally.PairedTrial]bool // chosen trials that have not ended
	end      record.DecisionEnd         // the reason why no more trials are chosen; empty while they are
}

// newChooser returns nil for a run without a question. earlier holds the results of earlier run
// sessions; it is nil without one.
func newChooser(rec *record.Run, tasks []*taskRun, earlier *tally.Deciding) *chooser {
	c := &chooser{deciding: earlier, tasks: tasks}
	if earlier == nil {
		c.deciding = tally.NewDeciding(rec)
	}
	if c.deciding == nil {
		return nil
	}
	c.choose()
	return c
}

// choose chooses the next trials, unless something ends the choice.
func (c *chooser) choose() {
	c.ready, c.end = c.deciding.Next(func(at tally.PairedTrial) bool { return c.tasks[at.Task].Earlier[at.Num] != nil })
	c.open = make(map[tally.PairedTrial]bool, len(c.ready))
	for _, at := range c.ready {
		c.open[at] = true
	}
}

// next returns the next chosen trial that can start, and the zero turn without one. Chosen trials
// of a task have ascending numbers, so each is the next one of its task.
func (c *chooser) next() turn {
	for i, at := range c.ready {
		if t := c.tasks[at.Task]; t.readyLocked() {
			c.ready = slices.Delete(c.ready, i, i+1)
			return t.takeLocked()
		}
	}
	return turn{}
}

// ended adds the result of a trial. A chosen trial without a result ends the choice, because the run
// is ending.
func (c *chooser) ended(t *taskRun, res *record.Trial) {
	at := tally.PairedTrial{Task: t.num - 1, Num: res.TrialNum}
	if !c.open[at] {
		return
	}
	delete(c.open, at)
	c.deciding.Add(at.Task, res)
	switch {
	case res.Verdict == record.Cancelled || res.Verdict == record.Skipped:
		c.ready, c.end = nil, record.EndInterrupted
	case len(c.open) == 0 && c.end == "":
		c.choose()
	}
}
