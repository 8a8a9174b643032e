package tally

import (
	"waza/runner/record"
	"waza/runner/stats"
)

// cellResults summarizes the cells.
func (t *summing) cellResults(cells []*record.Cell) []record.GroupResult {
	var out []record.GroupResult
	for _, c := range cells {
		counts := t.groups[c.Name]
		tasks := t.tasksOf(func(ref *record.TaskRef) bool { return ref.Cell.In(c) })
		out = append(out, record.GroupResult{
			Group: c.Name, TrialCounts: record.TrialCounts{Counts: counts, Rate: RateOver(tasks, counts)}, CellResult: t.cellResult(c, tasks),
		})
	}
	return out
}

func (t *summing) cellResult(c *record.Cell, tasks []*record.Task) *record.CellResult {
	r := &record.CellResult{
		Cell: c, Score: ScoreOver(tasks), Tools: ToolsOver(tasks), Baseline: t.baselineResult(c),
		Triggers: t.triggerResult(c),
	}
	if r.Baseline != nil {
		r.Baseline.Tasks = nil
	}
	if r.Triggers != nil {
		r.Triggers.Results = nil
	}
	if r.Routing = t.routed.result(t.rec, c); r.Routing != nil {
		r.Routing.Confusion, r.Routing.ConfusionDropped, r.Routing.Misroutes, r.Routing.MisroutesDropped = nil, 0, nil, 0
	}
	r.Benchmark = t.bench.result(t.rec, c)
	for _, res := range tasks {
		r.Tasks.Total++
		r.Tasks.Add(res.Verdict)
		r.Usage = record.AddUsage(r.Usage, res.Usage)
	}
	var times []float64
	for i := range t.rec.Tasks {
		if ref := &t.rec.Tasks[i]; ref.Role == record.RoleTask && ref.Cell.In(c) {
			times = append(times, t.durations[i]...)
		}
	}
	r.DurationMS = stats.SpreadOf(times)
	return r
}
