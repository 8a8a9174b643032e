package catalog_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/catalog"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

const standingSuite = `
name: standing
config: {executor: agent, trials_per_task: 4}
graders: [{name: good, type: text, config: {contains: [good]}}]
tasks: [{id: a, prompt: a}, {id: b, prompt: b}]
`

// passing is an agent whose first n trials of each task pass.
func passing(n int) runnertest.Agent {
	return func(_ context.Context, t *executor.Trial) (string, error) {
		if t.Num <= n {
			return "good", nil
		}
		return "bad", nil
	}
}

// standing returns the standing of the suite with that path.
func standing(t *testing.T, r *runner.Runner, path string) *catalog.SuiteStanding {
	t.Helper()
	runs, err := r.Catalog().ListBy(catalog.Filter{Path: path})
	require.NoError(t, err)
	s, err := r.Catalog().Standing(t.Context(), runs)
	require.NoError(t, err)
	return s
}

func TestStanding(t *testing.T) {
	t.Parallel()
	m := runnertest.NewMoods(t)
	s := standing(t, m.Runner, m.File)
	require.Nil(t, s.Suite.Now)
	require.Empty(t, s.Tasks)

	first := m.Run(standingSuite, record.Request{})
	s = standing(t, m.Runner, m.File)
	require.Equal(t, 2, s.Suite.Now.Counts.Passed)
	require.Nil(t, s.Suite.Before)
	require.Equal(t, 4, s.Tasks["a"].Now.Counts.Passed)
	require.Zero(t, s.Tasks["a"].Trend())

	m.Does(passing(1))
	second := m.Run(standingSuite, record.Request{Tasks: []string{"a"}})
	m.Run(standingSuite, record.Request{Task: "b", Trial: 1}) // a single trial does not count
	s = standing(t, m.Runner, m.File)
	require.Equal(t, first, s.Suite.Now.RunID, "a run of one task says nothing of the suite")
	a, b := s.Tasks["a"], s.Tasks["b"]
	require.Equal(t, second, a.Now.RunID)
	require.Equal(t, first, a.Before.RunID)
	require.Equal(t, record.Failed, a.Now.Verdict)
	require.Equal(t, 1, a.Now.Counts.Passed)
	require.Equal(t, 4, a.Now.Counts.Counted())
	require.InDelta(t, 0.25, *a.Now.PassRate, 1e-9)
	require.Equal(t, -1, a.Trend())
	require.Equal(t, first, b.Now.RunID)
	require.Nil(t, b.Before)

	m.Does(passing(2))
	m.Run(standingSuite, record.Request{})
	s = standing(t, m.Runner, m.File)
	require.Equal(t, 1, s.Tasks["a"].Trend())
	require.Equal(t, -1, s.Suite.Trend())
	require.Equal(t, 0, s.Suite.Now.Counts.Passed)
}

// The last results were shown without a word about a damaged record.
func TestStandingOfDamagedRun(t *testing.T) {
	t.Parallel()
	m := runnertest.NewMoods(t)
	id := m.Run(standingSuite, record.Request{})
	s := standing(t, m.Runner, m.File)
	require.False(t, s.Suite.Now.Damaged || s.Tasks["a"].Now.Damaged)
	runnertest.DamageRun(t, m.State, id)
	s = standing(t, m.Runner, m.File)
	require.True(t, s.Suite.Now.Damaged)
	require.True(t, s.Tasks["a"].Now.Damaged)
}

// The cells of a matrix count as one task of the suite.
func TestStandingOfMatrix(t *testing.T) {
	t.Parallel()
	m := runnertest.NewMoods(t)
	m.Does(func(_ context.Context, t *executor.Trial) (string, error) {
		if t.Model == "bad" {
			return "bad", nil
		}
		return "good", nil
	})
	m.Run("name: matrix\nconfig: {executor: agent, trials_per_task: 3, models: [fine, bad]}\n"+
		"graders: [{name: good, type: text, config: {contains: [good]}}]\ntasks: [{id: a, prompt: a}]\n", record.Request{})
	s := standing(t, m.Runner, m.File)
	require.Len(t, s.Tasks, 1)
	require.Equal(t, 3, s.Tasks["a"].Now.Counts.Passed)
	require.Equal(t, 6, s.Tasks["a"].Now.Counts.Counted())
	require.Equal(t, record.Failed, s.Tasks["a"].Now.Verdict)
	require.Equal(t, 1, s.Suite.Now.Counts.Total)
}
