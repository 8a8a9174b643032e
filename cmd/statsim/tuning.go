package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"waza/eval"
	"waza/runner/record"
	"waza/runner/stats"
	"waza/runner/tally"
)

// A tuning draws runs of the kind param_tune.
type tuning struct {
	name                 string
	cells, tasks, trials int
	// rate returns the rate of a cell in a task whose own rate is the given one.
	rate func(cell, task int, own float64) float64
	// equal reports whether a cell is as good as the truly best ones.
	equal func(cell int) bool
	// uneven: the trials of some cells vary, and those of the others do not. waza promises
	// nothing about the score of the best cell then, only about its interval.
	uneven bool
}

func (t tuning) design() string {
	return fmt.Sprintf("%d %s; tasks × trials %d × %d", t.cells, t.name, t.tasks, t.trials)
}

// A drawnTuning holds the scores of a run by task, cell and trial, and the true scores of its
// cells. A task without scores ended in error in that cell.
type drawnTuning struct {
	scores [][][]float64
	truth  []float64
}

func (t tuning) draw(rng *rand.Rand) drawnTuning {
	d := drawnTuning{make([][][]float64, t.tasks), make([]float64, t.cells)}
	own := make([]float64, t.tasks)
	for i := range own {
		own[i] = 0.1 + 0.8*rng.Float64()
	}
	for c := range t.cells {
		for i := range t.tasks {
			rate := t.rate(c, i, own[i])
			d.truth[c] += rate / float64(t.tasks)
			var scores []float64
			for range t.trials {
				scores = append(scores, float64(draw(rng, rate, 1)))
			}
			d.scores[i] = append(d.scores[i], scores)
		}
	}
	return d
}

// result returns what waza reports of the run.
func (d drawnTuning) result() *record.TuneResult {
	rec := &record.Run{Suite: record.SuiteRef{Kind: eval.ParamTune}}
	var scores [][]float64
	for c := range d.truth {
		cell := &record.Cell{Name: fmt.Sprint(c), Params: map[string]any{"temperature": c}}
		for i, task := range d.scores {
			rec.Tasks = append(rec.Tasks,
				record.TaskRef{
					ID: fmt.Sprintf("%d[%d]", i, c), Task: fmt.Sprint(i), Cell: cell, Groups: []string{cell.Name},
					First: 1, Trials: max(1, len(task[c])),
				})
			scores = append(scores, task[c])
		}
	}
	run := tally.NewDraft(rec)
	for i, scores := range scores {
		task := tally.NewTask(&rec.Tasks[i], 1)
		add := func(res *record.Trial) {
			task.Add(res)
			run.AddTrial(i, res)
		}
		for n, score := range scores {
			res := &record.Trial{TrialNum: n + 1, Verdict: record.Failed, Score: &score}
			if score == 1 {
				res.Verdict = record.Passed
			}
			add(res)
		}
		if len(scores) == 0 {
			add(&record.Trial{TrialNum: 1, Verdict: record.Errored, Error: "no answer"})
		}
		run.AddTask(i, task.Result(1))
	}
	return run.Summary(nil).Tune
}

// worseOf reports whether the test alone separates a cell from the best one although it is one of
// the truly best.
func (t tuning) worseOf(d drawnTuning) bool {
	field := stats.NewField(d.scores)
	best := 0
	for c := range t.cells {
		if field.Mean(c) > field.Mean(best) {
			best = c
		}
	}
	for c, worse := range field.Worse(best, 0.05, stats.DefaultSeed) {
		if worse && t.equal(c) {
			return true
		}
	}
	return false
}

// tunings returns the designs: equal cells, and cells that are equal in part.
func tunings() []tuning {
	every := func(int) bool { return true }
	var list []tuning
	for _, cells := range []int{3, 12, 50, 101} {
		for _, size := range [][2]int{{10, 1}, {5, 3}, {40, 1}, {2, 10}} {
			list = append(list, tuning{
				"equal cells, rate 0.5", cells, size[0], size[1], func(int, int, float64) float64 { return 0.5 }, every,
				false,
			})
		}
		list = append(list,
			tuning{"equal cells, any rates", cells, 10, 3, func(_, _ int, own float64) float64 { return own }, every, false},
			tuning{"equal cells, rate 0.95", cells, 10, 3, func(int, int, float64) float64 { return 0.95 }, every, false},
			tuning{"cells, every other 0.3 worse", cells, 10, 3, func(c, _ int, own float64) float64 {
				return max(0, own-0.3*float64(c%2))
			}, func(c int) bool { return c%2 == 0 }, false},
			tuning{"cells, every other never passes", cells, 10, 1, func(c, _ int, own float64) float64 {
				return own * float64(1-c%2)
			}, func(c int) bool { return c%2 == 0 }, false},
			tuning{"cells, two vary and the others always pass the same tasks", cells, 10, 1, func(c, task int, _ float64) float64 {
				if c < 2 {
					return 0.5
				}
				return float64(task % 2)
			}, func(c int) bool { return c < 2 }, true},
			tuning{"cells, one of them 0.3 better", cells, 10, 3, func(c, _ int, _ float64) float64 {
				if c == 0 {
					return 0.8
				}
				return 0.5
			}, func(c int) bool { return c == 0 }, false},
		)
	}
	return list
}

// overstated is the largest mean difference between the score of the best cell and its true
// score that waza promises.
const overstated = 0.03

// A selection is the report of a run, with the true score of the cell that was selected as the
// best.
type selection struct {
	*record.TuneScore
	truth float64
}

// cellsOfTunings measures how often a tuning calls a cell worse that is as good as the best,
// whether the interval of the best cell's score contains the true one, and by how much the score
// overstates it. The first measurement calls only the test, because the estimate takes longer.
func cellsOfTunings() []experiment {
	var list []experiment
	var selected [][]experiment
	for _, t := range tunings() {
		times := 1000
		if strings.HasPrefix(t.name, "cells") {
			times = 500
		}
		list = append(list, experiment{
			what: "some cell called worse that is not", design: t.design(), most: 0.05, times: times,
			run: repeated(func(rng *rand.Rand) bool { return t.worseOf(t.draw(rng)) }),
		})
		promised := overstated
		if t.uneven {
			promised = 0
		}
		selected = append(selected, together(t.design(), map[int]int{3: 1000, 12: 500, 50: 250, 101: 250}[t.cells], func(
			rng *rand.Rand,
		) selection {
			d := t.draw(rng)
			r := d.result()
			best, err := strconv.Atoi(r.Best)
			check(err)
			return selection{r.Score, d.truth[best]}
		},
			event[selection]{"score of the best cell, its interval", 0.94, 0, share(func(s selection) bool { return holds(s.Interval, s.truth) })},
			event[selection]{"score of the best cell, too high by", 0, promised, func(s selection) float64 { return s.Value - s.truth }},
			event[selection]{"score of the best cell's trials, too high by", 0, 0, func(s selection) float64 { return s.Observed - s.truth }},
		))
	}
	return append(list, byEvent(selected)...)
}

// leftOut measures rankings of equal cells if the hardest task ended in error in some of them. Its
// trials must not count in any cell: a cell without its hardest task would otherwise be the best
// one too often, and the other cells worse.
func leftOut() []experiment {
	var designs [][]experiment
	for _, c := range []struct{ cells, errored int }{{2, 1}, {3, 1}, {12, 1}, {12, 6}} {
		t := tuning{cells: c.cells, tasks: 10, trials: 3, rate: func(_, task int, _ float64) float64 {
			if task == 0 {
				return 0.1
			}
			return 0.8
		}}
		errored := func(name string) bool {
			cell, err := strconv.Atoi(name)
			check(err)
			return cell >= c.cells-c.errored // the first of equally good cells is the best one
		}
		design := fmt.Sprintf("%d equal cells, hardest task in error in %d; tasks × trials %d × %d", t.cells, c.errored, t.tasks, t.trials)
		designs = append(designs, together(design, 1000, func(rng *rand.Rand) *record.TuneResult {
			d := t.draw(rng)
			for cell := t.cells - c.errored; cell < t.cells; cell++ {
				d.scores[0][cell] = nil
			}
			return d.result()
		},
			event[*record.TuneResult]{
				"a cell whose hardest task is in error is the best", 0, float64(c.errored) / float64(c.cells),
				share(func(r *record.TuneResult) bool { return errored(r.Best) }),
			},
			event[*record.TuneResult]{
				"some cell called worse, hardest task in error", 0, 0.05,
				share(func(r *record.TuneResult) bool { return len(r.Rivals) < c.cells-1 }),
			},
		))
	}
	return byEvent(designs)
}
