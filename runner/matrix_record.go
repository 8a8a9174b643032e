package runner

import "waza/runner/stats"

// Matrix reports whether the run has a matrix.
func (r *Record) Matrix() bool { return len(r.Tasks) > 0 && r.Tasks[0].Cell != nil }

// Overrides are the executor and the agent that the run's suite is to be loaded
// for, see [eval.Options]: those that the run had or, where a matrix chooses, those
// that were asked for.
func (r *Record) Overrides() (executor, agent string) {
	if r.Matrix() {
		return r.Asked.Executor, r.Asked.Agent
	}
	return r.Config.Executor, r.Config.Agent
}

// cells are those of the run's matrix, in its order; none without one.
func (r *Record) cells() []*CellRef {
	var cells []*CellRef
	seen := map[string]bool{}
	for i := range r.Tasks {
		if c := r.Tasks[i].Cell; c != nil && !seen[c.Name] {
			seen[c.Name] = true
			cells = append(cells, c)
		}
	}
	return cells
}

// in reports whether it is that cell; anything is in nil.
func (c *CellRef) in(cell *CellRef) bool {
	return cell == nil || c != nil && c.Name == cell.Name
}

// cellResults sum up the cells. The lock of the tally is held.
func (t *runTally) cellResults(cells []*CellRef) []GroupResult {
	var out []GroupResult
	for _, c := range cells {
		var counts Counts
		if n := t.groups[c.Name]; n != nil {
			counts = *n
		}
		tasks := t.tasksLocked(func(ref *TaskRef) bool { return ref.Cell.in(c) })
		out = append(out, GroupResult{
			Group: c.Name, TrialCounts: TrialCounts{Counts: counts, Rate: rateOver(tasks, counts)}, CellResult: t.cellResult(c, tasks),
		})
	}
	return out
}

func (t *runTally) cellResult(c *CellRef, tasks []*TaskResult) *CellResult {
	r := &CellResult{Cell: c, Score: scoreOver(tasks), Baseline: t.baselineResult(c), Triggers: t.triggerResult(c)}
	if r.Baseline != nil {
		r.Baseline.Tasks = nil
	}
	if r.Triggers != nil {
		r.Triggers.Results = nil
	}
	var times []float64
	trials := 0
	for _, res := range tasks {
		r.Tasks.Total++
		r.Tasks.Add(res.Verdict)
		r.Usage = addUsage(r.Usage, res.Usage)
		if d := res.DurationMS; d != nil {
			times = append(times, float64(d.Mean*float64(d.N)))
			trials += d.N
		}
	}
	if trials > 0 {
		mean := stats.Describe(times).Mean * float64(len(times)) / float64(trials)
		r.MeanDurationMS = &mean
	}
	return r
}
