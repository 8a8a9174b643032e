package plan

import (
	"slices"

	"waza/runner/cache"
)

// FindEarlier notes for each task of the plan which of its trials were done before.
func (p *Plan) FindEarlier(r *Planner) {
	wanted := make([]cache.Task, len(p.Tasks))
	for i, t := range p.Tasks {
		if t.Cell != nil && t.Cell.Generation > 0 {
			continue // the prompts of another run were others
		}
		wanted[i] = cache.Task{Execution: t.Execution, Hash: t.Hash, First: t.First, Trials: t.Trials}
	}
	p.cache = cache.Find(r.runs, wanted, r.log)
	for i, t := range p.Tasks {
		t.Earlier = p.cache.Tasks[i]
	}
	p.env.Recorded = !p.executes()
}

// executes reports whether a trial of the task has to be executed.
func (t *Task) executes() bool {
	for num := t.First; num < t.First+t.Trials; num++ {
		if t.Earlier[num] == nil {
			return true
		}
	}
	return false
}

// Grades reports whether graders have something to do for the task.
func (t *Task) Grades() bool {
	for num := t.First; num < t.First+t.Trials; num++ {
		if e := t.Earlier[num]; e == nil || !e.AsIs() {
			return true
		}
	}
	return false
}

// Cached is how many trials are taken over from earlier runs.
func (p *Plan) Cached() int {
	n := 0
	for _, t := range p.Tasks {
		n += len(t.Earlier)
	}
	return n
}

// executes reports whether anything has to be executed.
func (p *Plan) executes() bool { return slices.ContainsFunc(p.Tasks, (*Task).executes) }
