package tally

import (
	"slices"

	"waza/runner/record"
)

// Unfinished sums up the trials that have ended of tasks that have not, by the
// index of the task: of a run that goes on, or whose process was killed. Their
// verdict is empty, for the trials that are missing have a say in it. It reads
// every trial of such a run.
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
