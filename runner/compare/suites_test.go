package compare_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/compare"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// Each suite is compared with its own reference, and one correction covers all suites: with a
// second suite, the p-values of the first one do not get smaller, and its regression stays.
func TestCompareSuites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	suite := "-- eval.yaml --\nname: first\nconfig: {executor: agent, trials_per_task: 8}\n" +
		"graders: [{name: good, type: text, config: {contains: [good]}}]\ntasks: [{id: a, prompt: x}, {id: b, prompt: x}]\n"
	other := strings.NewReplacer("first", "second", "id: a", "id: c", "id: b", "id: d").Replace(suite)
	record1 := func(text string, rate float64) record.Handle {
		return runnertest.RecordRun(t, dir, text, seeded(1, func(string) float64 { return rate }))
	}
	firstBase, firstHead := record1(suite, 1), record1(suite, 0)
	secondBase, secondHead := record1(other, 1), record1(other, 1)
	pair := func(a, b record.Handle) []compare.Source {
		return []compare.Source{compare.FromRun(a), compare.FromRun(b)}
	}

	both, err := compare.CompareSuites(t.Context(),
		[][]compare.Source{pair(firstBase, firstHead), pair(secondBase, secondHead)}, compare.Options{})
	require.NoError(t, err)
	require.Len(t, both.Runs, 4)
	require.Len(t, both.Comparisons, 2)
	require.Equal(t, firstBase.ID(), both.Comparisons[0].Reference)
	require.Equal(t, secondBase.ID(), both.Comparisons[1].Reference)
	require.Equal(t, 2, both.Comparisons[0].Regressed)
	require.Equal(t, record.OutcomeWorse, both.Comparisons[0].Outcome)
	require.Zero(t, both.Comparisons[1].Regressed)
	require.True(t, both.Regressed())
	require.Equal(t, compare.OnTasksFail, both.OnCollapsedTasks)

	alone := runnertest.Compare(t, compare.Options{}, firstBase, firstHead)
	for i, task := range alone.Comparisons[0].Tasks {
		require.LessOrEqual(t, task.P, both.Comparisons[0].Tasks[i].P)
	}
	require.Len(t, alone.Suites(), 1)
	parts := both.Suites()
	require.Len(t, parts, 2)
	for i, name := range []string{"first", "second"} {
		require.Len(t, parts[i].Runs, 2)
		require.Equal(t, name, parts[i].Runs[0].Suite.Name)
		require.Len(t, parts[i].Comparisons, 1)
	}

	chosen, err := compare.CompareSuites(t.Context(),
		[][]compare.Source{pair(firstBase, firstHead), pair(secondBase, secondHead)},
		compare.Options{Tasks: []string{"c"}})
	require.NoError(t, err)
	require.Len(t, chosen.Runs, 2, "a suite without a chosen task is left out")
	require.Equal(t, "second", chosen.Runs[0].Suite.Name)

	// Runs without a common task hide no other suite, and are no success.
	mixed, err := compare.CompareSuites(t.Context(),
		[][]compare.Source{pair(firstBase, firstHead), pair(firstBase, secondHead)}, compare.Options{})
	require.NoError(t, err)
	require.Zero(t, mixed.Comparisons[1].Compared)
	require.True(t, mixed.Comparisons[1].Partial())
	_, err = compare.CompareSuites(t.Context(),
		[][]compare.Source{pair(firstBase, secondHead), pair(secondBase, firstHead)}, compare.Options{})
	require.ErrorIs(t, err, compare.ErrNothingCompared)
}
