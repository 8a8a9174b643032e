package plan

import (
	"slices"

	"waza/runner/internal/cache"
)

// FindReusable finds for each task of the plan the trials of earlier runs that can be reused.
func (p *Plan) FindReusable(r *Planner) {
	wanted := make([]cache.Task, len(p.Tasks))
	for i, t := range p.Tasks {
		if t.Cell != nil && t.Cell.Generation > 0 {
			continue // another run had other prompts
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
	if t.RecordedOnly {
		return false
	}
	for num := t.First; num < t.First+t.Trials; num++ {
		if t.Earlier[num] == nil {
			return true
		}
	}
	return false
}

// Grades reports whether graders have to grade trials of the task.
func (t *Task) Grades() bool {
	for num := t.First; num < t.First+t.Trials; num++ {
		if e := t.Earlier[num]; e == nil || !e.AsIs() {
			return true
		}
	}
	return false
}

// Cached returns the number of trials that are reused from earlier runs.
func (p *Plan) Cached() int {
	n := 0
	for _, t := range p.Tasks {
		n += len(t.Earlier)
	}
	return n
}

// executes reports whether anything has to be executed.
func (p *Plan) executes() bool { return slices.ContainsFunc(p.Tasks, (*Task).executes) }
