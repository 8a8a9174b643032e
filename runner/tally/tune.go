package tally

import (
	"cmp"
	"fmt"
	"slices"

	"waza/eval"
	"waza/runner/record"
	"waza/runner/stats"
)

const (
	// rivalLevel is the level of the test of [summing.tuneResult], over all cells together.
	rivalLevel = 0.05
	// mostTested limits the number of tested cells, because the time of the test grows with it.
	mostTested = 1000
)

// tuning keeps the scores of the trials of a param_tune or prompt_tune, by task. It keeps each
// score, because tests need them all. A nil tuning keeps none.
type tuning [][]float64

func newTuning(rec *record.Run) tuning {
	if k := rec.Suite.Kind; k != eval.ParamTune && k != eval.PromptTune {
		return nil
	}
	return make(tuning, len(rec.Tasks))
}

func (t tuning) add(task int, res *record.Trial) {
	if score := res.CountedScore(); t != nil && score != nil && res.Verdict.Counted() {
		t[task] = append(t[task], *score)
	}
}

// tuneResult ranks the cells by their mean score over the tasks that they have in common, and
// names those that may be as good as the best. It returns nil while no cell has a score.
//
// A cell is a rival unless a permutation test over all cells separates it from the best, see
// [stats.Field.Worse]. If the scores of all cells have, task by task, the same distribution, the
// probability that any of them is classified as worse is at most 5 %.
//
// The score of the best cell is an estimate that allows for the selection, see
// [stats.Field.Selected].
//
// Example: three cells have the mean scores 0.9, 0.85 and 0.3. The best is the first. The third
// is 0.6 below it. If 1 % of all ways to deal out the trials among the cells have such a
// distance, the third is worse. Without it, 20 % of all ways have a distance of 0.05, so the
// second cell is a rival.
func (t *summing) tuneResult(common []string, sides []Side) *record.TuneResult {
	if t.tuning == nil {
		return nil
	}
	if len(common) == 0 {
		if !slices.ContainsFunc(t.tasks, scored) {
			return nil
		}
		return &record.TuneResult{
			Note:    "the cells are not ranked, because no task has a score in all of them",
			Prompts: slices.Clone(t.state.Prompts),
		}
	}
	sides = slices.DeleteFunc(slices.Clone(sides), func(s Side) bool { return !scored(s.Tasks[common[0]]) })
	field := stats.NewField(t.scoresOf(common, sides))
	order, passed := make([]int, len(sides)), make([]int, len(sides))
	for i, s := range sides {
		order[i] = i
		for _, task := range common {
			passed[i] += s.Tasks[task].Trials.Passed
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(field.Mean(b), field.Mean(a)), cmp.Compare(passed[b], passed[a]))
	})
	best := order[0]
	estimate := field.Selected(best, stats.DefaultConfidence)
	res := &record.TuneResult{
		Best: sides[best].Name, Prompts: slices.Clone(t.state.Prompts),
		Score: &record.TuneScore{
			Value: estimate.Value, Interval: estimate.Interval, Observed: field.Mean(best),
			Basis: record.BasisShrunk, Cells: len(sides),
		},
	}
	if len(sides) == 1 {
		res.Score.Basis = record.BasisMeasured
	}
	if len(sides) > mostTested {
		res.Note = fmt.Sprintf("more than %d cells have scores; rivals were not determined", mostTested)
		return res
	}
	worse := field.Worse(best, rivalLevel, stats.DefaultSeed)
	for _, i := range order[1:] {
		if !worse[i] {
			res.Rivals = append(res.Rivals, sides[i].Name)
		}
	}
	return res
}

// scoresOf returns the scores of tasks of the suite, by task and cell.
func (t *Run) scoresOf(tasks []string, cells []Side) [][][]float64 {
	scores := map[[2]string][]float64{}
	for i := range t.rec.Tasks {
		if ref := &t.rec.Tasks[i]; ref.Role == record.RoleTask && ref.Cell != nil {
			scores[[2]string{ref.Task, ref.Cell.Name}] = t.tuning[i]
		}
	}
	list := make([][][]float64, len(tasks))
	for i, task := range tasks {
		for _, c := range cells {
			list[i] = append(list[i], scores[[2]string{task, c.Name}])
		}
	}
	return list
}
