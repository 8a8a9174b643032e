package tally

import (
	"waza/runner/record"
	"waza/runner/stats"
)

// shrunken returns the shrunken pass rates of the suite's tasks. It returns nil in a matrix, whose
// cells have other rates, and where [stats.Shrink] shows none. It leaves out tasks
// that wait for a person, that have fewer than three counted trials, and that could stop early,
// because their shares of passes do not have the variance of a plain sample.
func (t *summing) shrunken() *record.ShrunkenRates {
	if t.rec.Matrix() {
		return nil
	}
	var ids []string
	var rates []stats.Noisy
	for i, res := range t.tasks {
		ref := &t.rec.Tasks[i]
		if res == nil || ref.Role != record.RoleTask || res.CouldStop() || res.Trials.NeedsReview > 0 {
			continue
		}
		if rate, ok := stats.NoisyRate(stats.Share{Passed: res.Trials.Passed, N: res.Trials.Counted()}); ok {
			ids, rates = append(ids, ref.ID), append(rates, rate)
		}
	}
	s, ok := stats.Shrink(rates)
	if !ok {
		return nil
	}
	out := &record.ShrunkenRates{Mean: s.Mean, Weight: s.Weight}
	for i, id := range ids {
		out.Tasks = append(out.Tasks, record.ShrunkenRate{ID: id, PassRate: s.Values[i]})
	}
	return out
}
