package tally_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/tally"
)

func tools(selection float64, params *float64, overall float64) *record.TrialTools {
	return &record.TrialTools{ToolScores: record.ToolScores{Selection: selection, Params: params, Overall: overall}}
}

// Tasks have the means over trials, and runs and cells the means over tasks, computed by hand.
func TestToolScoreMeans(t *testing.T) {
	t.Parallel()
	x := func(x float64) *float64 { return &x }
	task := func(trials ...*record.Trial) *record.Task {
		sum := tally.NewTask(&record.TaskRef{Trials: len(trials)}, 1)
		for _, trial := range trials {
			sum.Add(trial)
		}
		return sum.Result(1)
	}
	of := func(v record.Verdict, tools *record.TrialTools) *record.Trial {
		return &record.Trial{Verdict: v, Tools: tools}
	}
	a := task(
		of(record.Passed, tools(1, x(1), 1)),
		of(record.Failed, tools(1, x(0.8), 0.9)),
		of(record.TimedOut, tools(0, x(0), 0)),
		of(record.NeedsReview, tools(0.5, x(0.2), 0.35)),
		of(record.Errored, nil),
		of(record.Errored, tools(1, x(1), 1)), // which no executor produces
	)
	require.Equal(t, &record.ToolScores{Selection: 2.5 / 4, Params: x(0.5), Overall: 2.25 / 4}, a.Tools)
	b := task(of(record.Failed, tools(0.5, nil, 0.5)), of(record.Failed, tools(0, nil, 0)))
	require.Equal(t, &record.ToolScores{Selection: 0.25, Overall: 0.25}, b.Tools)
	none := task(of(record.Passed, nil))
	require.Nil(t, none.Tools)

	cells := []*record.Cell{{Name: "model=m", Model: "m"}, {Name: "model=n", Model: "n"}}
	rec := &record.Run{
		Tasks: []record.TaskRef{
			{ID: "a", Cell: cells[0]}, {ID: "b", Cell: cells[0]}, {ID: "none", Cell: cells[1]},
			{ID: "base", Role: record.RoleBaseline, Cell: cells[0]},
		},
	}
	run := tally.NewDraft(rec)
	for i, res := range []*record.Task{a, b, none, a} {
		run.AddTask(i, res)
	}
	sum := run.Summary(nil)
	want := &record.ToolScores{Selection: (0.625 + 0.25) / 2, Params: x(0.5), Overall: (0.5625 + 0.25) / 2}
	require.Equal(t, want, sum.Tools)
	require.Equal(t, want, sum.Groups[0].Tools)
	require.Nil(t, sum.Groups[1].Tools)
	require.Nil(t, tally.NewDraft(rec).Summary(nil).Tools)
}

// Trials of a task that stopped early have the weights of its unbiased rate.
func TestToolScoresOfStoppedTasks(t *testing.T) {
	t.Parallel()
	ref := &record.TaskRef{Trials: 10, Stopping: 0.95}
	sum := tally.NewTask(ref, 0.5)
	for i, v := range []record.Verdict{record.Passed, record.Failed, record.Passed, record.Passed} {
		trial := &record.Trial{Verdict: v, Score: new(float64), Tools: tools(0, nil, 0)}
		if v == record.Passed {
			*trial.Score, trial.Tools = 1, tools(1, nil, 1)
		}
		sum.Add(trial)
		sum.Early.Add(i, v)
	}
	res := sum.Result(0.5)
	require.NotNil(t, res.Unbiased)
	require.InDelta(t, res.Unbiased.PassRate, res.Tools.Overall, 1e-12)
	require.InDelta(t, *res.Unbiased.Score, res.Tools.Selection, 1e-12)
}
