package tally

import (
	"slices"

	"waza/runner/record"
)

// Unfinished summarizes the ended trials of tasks that have not ended, by task index. Such tasks
// belong to an active run, or to a run whose process was killed. Their verdict is empty, because
// it depends on the missing trials. Unfinished reads every trial of such a run.
func Unfinished(h record.Handle) (map[int]*record.Task, error) {
	results, err := h.Results()
	if err != nil || !slices.Contains(results, nil) {
		return nil, err
	}
	tallies := map[int]*Task{}
	err = h.Trials(func(task int, t *record.Trial) error {
		if results[task] == nil {
			if tallies[task] == nil {
				tallies[task] = new(Task)
			}
			tallies[task].Add(t)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	sums := map[int]*record.Task{}
	for task, t := range tallies {
		sums[task] = t.Result(1)
		sums[task].Verdict = ""
	}
	return sums, nil
}
