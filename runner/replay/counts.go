package replay

import (
	"cmp"

	"waza/runner/record"
)

// counts is the part of a run's state that needs no places of trials: the status of the run, and
// the numbers of ended tasks and trials. [State] and [Follower] share it.
type counts struct {
	rec *record.Run
	ids map[string]int // indexes of tasks; nil until first used
	// Progress counts the tasks of the suite and their trials.
	Progress record.Progress
	baseline record.Counts // trials
	triggers record.Counts // trials
}

func newCounts(rec *record.Run) counts {
	c := counts{rec: rec, Progress: record.Progress{Status: record.StatusRunning, StartedAt: rec.CreatedAt}}
	for _, t := range rec.Tasks {
		c.trials(t.Role).Total += t.Trials
		if t.Role == record.RoleTask {
			c.Progress.Tasks.Total++
		}
	}
	return c
}

// Trials counts the trials of tasks with a role.
func (c *counts) Trials(role record.Role) record.Counts { return *c.trials(role) }

// AllTrials counts the trials of all tasks, whatever their role.
func (c *counts) AllTrials() record.Counts {
	all := c.Progress.Trials
	all.Merge(c.baseline)
	all.Merge(c.triggers)
	return all
}

func (c *counts) trials(role record.Role) *record.Counts {
	switch role {
	case record.RoleBaseline:
		return &c.baseline
	case record.RoleTrigger:
		return &c.triggers
	}
	return &c.Progress.Trials
}

// countTrial changes the counted verdict of a trial from was to is. The empty verdict means that
// the trial has not ended.
func (c *counts) countTrial(role record.Role, was, is record.Verdict) {
	n := c.trials(role)
	n.Remove(was)
	n.Add(is)
}

// countTask does the same for a task. Only tasks of the suite count.
func (c *counts) countTask(role record.Role, was, is record.Verdict) {
	if role == record.RoleTask {
		c.Progress.Tasks.Remove(was)
		c.Progress.Tasks.Add(is)
	}
}

// verdictOf returns the verdict of a task; empty when it has not ended.
func verdictOf(res *record.Task) record.Verdict {
	if res == nil {
		return ""
	}
	return res.Verdict
}

// end processes the event that ends a run.
func (c *counts) end(e *record.Event) {
	p, ended := &c.Progress, e.Time
	p.Status, p.Error, p.EndedAt, p.Summary, p.Deciding = e.Status, e.Error, &ended, cmp.Or(e.Summary, p.Summary), nil
}

// reopen undoes end, and drops the time of the last amendment.
func (c *counts) reopen() {
	p := &c.Progress
	p.Status, p.Error, p.EndedAt, p.Summary, p.AmendedAt = record.StatusRunning, "", nil, nil, nil
}

// amended processes the last event of an amendment.
func (c *counts) amended(e *record.Event) {
	if e.Summary == nil {
		return
	}
	p := &c.Progress
	tasks, trials := p.Tasks.Total, p.Trials.Total // the summary counts only what has ended
	p.Summary, p.Tasks, p.Trials = e.Summary, e.Summary.Counts, e.Summary.Trials.Counts
	p.Tasks.Total, p.Trials.Total = tasks, trials
	p.AmendedAt = &e.Time
}

// index returns the index of an event's task, or -1.
func (c *counts) index(e *record.Event) int {
	if n := e.TaskNum - 1; n >= 0 && n < len(c.rec.Tasks) && c.rec.Tasks[n].ID == e.TaskID {
		return n
	}
	if c.ids == nil {
		c.ids = make(map[string]int, len(c.rec.Tasks))
		for i, t := range c.rec.Tasks {
			c.ids[t.ID] = i
		}
	}
	if i, ok := c.ids[e.TaskID]; ok {
		return i
	}
	return -1
}
