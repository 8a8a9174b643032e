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
	// rivalLevel is the combined level of all tests of [Run.tuneResult].
	rivalLevel = 0.05
	// mostRivals limits the number of tested cells, because the time of the tests grows with it.
	mostRivals = 100
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

// tuneResult ranks the cells by their mean score over tasks, and names those that may be as good
// as the best. The caller holds the lock of the tally.
//
// A cell is a rival unless a permutation test within tasks, like that for comparing runs (see
// [stats.PermutationStrata]), separates its scores from those of the best at the level 0.05 /
// (cells - 1). If the scores of some cells have, task by task, the same distribution as those of
// the best, the probability that any of them is classified as worse is at most 5 % (Bonferroni).
//
// Example: three cells have the mean scores 0.9, 0.85 and 0.3. The best is the first. Its tests
// against the others have p = 0.4 and p = 0.001. The level is 0.05 / 2 = 0.025, so the second
// cell is a rival and the third is not.
func (t *Run) tuneResult(groups []record.GroupResult) *record.TuneResult {
	var cells []record.GroupResult
	for _, g := range groups {
		if g.CellResult != nil && g.Score != nil {
			cells = append(cells, g)
		}
	}
	if t.tuning == nil || len(cells) == 0 {
		return nil
	}
	slices.SortStableFunc(cells, func(a, b record.GroupResult) int {
		return cmp.Or(cmp.Compare(b.Score.Mean, a.Score.Mean), cmp.Compare(b.Passed, a.Passed))
	})
	res := &record.TuneResult{Best: cells[0].Group, Prompts: slices.Clone(t.prompts)}
	others := cells[1:]
	if len(others) > mostRivals {
		res.Note = fmt.Sprintf("more than %d cells have scores; rivals were not determined", mostRivals+1)
		return res
	}
	for _, c := range others {
		test := stats.PermutationStrata(t.scoresOf(cells[0].Cell, c.Cell), stats.DefaultSeed)
		if test.P > rivalLevel/float64(len(others)) {
			res.Rivals = append(res.Rivals, c.Group)
		}
	}
	return res
}

// scoresOf returns the scores of two cells, by task of the suite.
func (t *Run) scoresOf(a, b *record.Cell) []stats.Scores {
	byTask := map[string]*stats.Scores{}
	var order []string
	for i := range t.rec.Tasks {
		ref := &t.rec.Tasks[i]
		if ref.Role != record.RoleTask || ref.Cell == nil {
			continue
		}
		s := byTask[ref.Task]
		if s == nil {
			s = &stats.Scores{}
			byTask[ref.Task], order = s, append(order, ref.Task)
		}
		switch ref.Cell.Name {
		case a.Name:
			s.A = t.tuning[i]
		case b.Name:
			s.B = t.tuning[i]
		}
	}
	list := make([]stats.Scores, len(order))
	for i, task := range order {
		list[i] = *byTask[task]
	}
	return list
}
