package compare_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/compare"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// ledger gives each question the next place.
type ledger struct {
	places map[string]int
	err    error
}

func (l *ledger) Ask(baseline, _, question string) (int, error) {
	key := baseline + " " + question
	if l.places[key] == 0 {
		l.places[key] = len(l.places) + 1
	}
	return l.places[key], l.err
}

// Few tasks improve strongly: these tasks are better, and tasks like these are undecided. The verdict is
// about the latter, unless the caller asks for the former. A ledger makes the p-values of later
// comparisons larger, and the same comparison keeps its place.
func TestCompareAnswersTwoQuestions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rate := func(better int) func(task string) float64 {
		return func(task string) float64 {
			return map[bool]float64{true: 1, false: 0}[task < fmt.Sprintf("t%02d", better)]
		}
	}
	a := runnertest.RecordRun(t, dir, comparedSuite(), seeded(1, rate(0)))
	few := runnertest.RecordRun(t, dir, comparedSuite(), seeded(1, rate(4)))
	many := runnertest.RecordRun(t, dir, comparedSuite(), seeded(1, rate(30)))

	x := runnertest.Compare(t, compare.Options{}, a, few).Comparisons[0]
	require.Equal(t, record.TasksLikeThese, x.About)
	require.Equal(t, []record.Outcome{record.OutcomeUndecided, record.OutcomeUndecided, record.OutcomeBetter},
		[]record.Outcome{x.Outcome, x.TasksLikeThese.Outcome, x.TheseTasks.Outcome})
	require.Equal(t, x.TasksLikeThese.PassRate, x.PassRate)
	require.False(t, x.PassRate.Interval.ExcludesZero())
	require.True(t, x.TheseTasks.PassRate.Interval.ExcludesZero())
	require.Nil(t, x.Comparison)
	require.Greater(t, x.TasksLikeThese.Variance.Share, 0.5, "trials of a task always agree")
	require.Greater(t, *x.TasksLikeThese.TasksNeeded, 40)
	y := runnertest.Compare(t, compare.Options{About: record.TheseTasks}, a, few).Comparisons[0]
	require.Equal(t, record.OutcomeBetter, y.Outcome)
	require.Equal(t, x.TheseTasks, y.TheseTasks)
	require.Equal(t, x.TasksLikeThese, y.TasksLikeThese)

	l := &ledger{places: map[string]int{}}
	counted := func(runs ...record.Handle) *compare.RunComparison {
		return &runnertest.Compare(t, compare.Options{Ledger: l}, runs...).Comparisons[0]
	}
	first := counted(a, few)
	require.Equal(t, &compare.Place{Place: 1, Weight: 0.8}, first.Comparison)
	require.InEpsilon(t, x.TheseTasks.P/0.8, first.TheseTasks.P, 1e-9)
	second := counted(a, many)
	require.Equal(t, 2, second.Comparison.Place)
	require.Equal(t, record.OutcomeBetter, second.Outcome)
	alone := runnertest.Compare(t, compare.Options{}, a, many).Comparisons[0]
	require.InEpsilon(t, 10*alone.P, second.P, 1e-9)
	require.InEpsilon(t, 10*alone.Tasks[0].P, second.Tasks[0].P, 1e-9)
	require.Equal(t, 1, counted(a, few).Comparison.Place)
	together := runnertest.Compare(t, compare.Options{Ledger: l}, a, few, many)
	require.Equal(t, 3, together.Comparisons[0].Comparison.Place)
	require.Equal(t, together.Comparisons[0].Comparison, together.Comparisons[1].Comparison)

	l.err = errors.New("disk full")
	failed := counted(a, few)
	require.Contains(t, failed.Notes, compare.ComparisonNote{Text: "this comparison with the baseline could not be counted: disk full"})
}
