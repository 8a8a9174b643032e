package tally_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/record"
	"waza/runner/tally"
)

// tuned returns the result of a tuning whose cells have these scores: by cell, task and trial.
func tuned(t *testing.T, kind eval.SuiteKind, cells [][][]float64) *record.TuneResult {
	t.Helper()
	rec := &record.Run{Suite: record.SuiteRef{Kind: kind}}
	var scores [][]float64
	for task := range cells[0] {
		for i := range cells {
			c := &record.Cell{Name: fmt.Sprintf("c%d", i), Params: map[string]any{"temperature": i}}
			id := fmt.Sprintf("t%d", task)
			rec.Tasks = append(rec.Tasks, record.TaskRef{ID: id + c.Name, Task: id, Cell: c, Groups: []string{c.Name}, First: 1, Trials: len(cells[i][task])})
			scores = append(scores, cells[i][task])
		}
	}
	run := tally.NewRun(rec)
	for i, list := range scores {
		task := tally.NewTask(&rec.Tasks[i], 1)
		for _, s := range list {
			res := &record.Trial{Verdict: record.Failed, Score: &s}
			if s == 1 {
				res.Verdict = record.Passed
			}
			task.Add(res)
			run.AddTrial(i, res)
		}
		run.AddTask(i, task.Result(1))
	}
	return run.Summary(nil).Tune
}

func repeat(n int, scores ...float64) (list []float64) {
	for range n {
		list = append(list, scores...)
	}
	return list
}

func TestTuneResult(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cells [][][]float64
		want  *record.TuneResult
	}{
		// Of 10 against 10 different trials, 2 of C(20, 10) = 184,756 ways to deal out are as extreme.
		"a clear winner":            {[][][]float64{{repeat(10, 0)}, {repeat(10, 1)}}, &record.TuneResult{Best: "c1"}},
		"equal scores, the first":   {[][][]float64{{{1}}, {{1}}, {{1}}}, &record.TuneResult{Best: "c0", Rivals: []string{"c1", "c2"}}},
		"few trials say little":     {[][][]float64{{{0.2}, {0.3}}, {{0.9}, {1}}}, &record.TuneResult{Best: "c1", Rivals: []string{"c0"}}},
		"rivals by their scores":    {[][][]float64{{{0.1}}, {{0.9}}, {{0.5}}}, &record.TuneResult{Best: "c1", Rivals: []string{"c2", "c0"}}},
		"more passed, equal scores": {[][][]float64{{{0.5, 0.5}}, {{1, 0}}}, &record.TuneResult{Best: "c1", Rivals: []string{"c0"}}},
		// Two-sided p of 4 against 4 is 2 / C(8, 4) = 0.029: enough for one test, not for two.
		"one of two":   {[][][]float64{{repeat(4, 0)}, {repeat(4, 1)}}, &record.TuneResult{Best: "c1"}},
		"one of three": {[][][]float64{{repeat(4, 0)}, {repeat(4, 1)}, {repeat(4, 0)}}, &record.TuneResult{Best: "c1", Rivals: []string{"c0", "c2"}}},
		// Over three tasks of two trials each: 2 / C(4, 2)^3 = 0.0093.
		"over tasks": {[][][]float64{{{0, 0}, {0, 0}, {0, 0}}, {{1, 1}, {1, 1}, {1, 1}}}, &record.TuneResult{Best: "c1"}},
	} {
		require.Equal(t, c.want, tuned(t, eval.ParamTune, c.cells), name)
		require.Equal(t, c.want, tuned(t, eval.PromptTune, c.cells), name)
		require.Nil(t, tuned(t, "", c.cells), name)
	}
}

// A cell equal to the best is classified as worse in at most 5 % of runs.
func TestTuneKeepsEqualCells(t *testing.T) {
	t.Parallel()
	const runs, cells, tasks, trials = 400, 4, 3, 4
	random := rand.New(rand.NewPCG(1, 1))
	wrong := 0
	for range runs {
		var scores [][][]float64
		for range cells {
			var all [][]float64
			for task := range tasks {
				var list []float64
				for range trials {
					s := 0.0
					if random.Float64() < 0.3+0.2*float64(task) {
						s = 1
					}
					list = append(list, s)
				}
				all = append(all, list)
			}
			scores = append(scores, all)
		}
		// The first cell is truly among the best. It is lost when it is neither Best nor a
		// rival.
		res := tuned(t, eval.ParamTune, scores)
		if res.Best != "c0" && !slices.Contains(res.Rivals, "c0") {
			wrong++
		}
	}
	// With a true rate of 5 %, more than 33 of 400 come up once in 1,000 times.
	require.LessOrEqual(t, wrong, 33)
}
