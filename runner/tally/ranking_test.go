package tally

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

// Comparisons of the same case count as one task, whichever models they compare.
func TestRankingOf(t *testing.T) {
	t.Parallel()
	var list []*record.CaseComparison
	for n := range 10 {
		id := func(model string) string { return fmt.Sprintf("case-%d@%s", n, model) }
		for _, pair := range [][2]string{{"m-1", "m-2"}, {"m-1", "m-3"}, {"m-2", "m-3"}} {
			winner := record.WinnerA
			if n%3 == 0 {
				winner = record.WinnerB
			}
			list = append(list, &record.CaseComparison{
				ModelA: pair[0], ModelB: pair[1], TaskA: id(pair[0]), TaskB: id(pair[1]), Winner: winner,
			})
		}
	}
	ranking := rankingOf(list)
	require.Len(t, ranking, 3)
	for i, m := range ranking {
		require.Equal(t, fmt.Sprintf("m-%d", i+1), m.Model)
		require.Equal(t, i+1, m.Rank)
		require.Equal(t, 1, m.Group)
		require.True(t, m.StrengthInterval.Low < m.Strength && m.Strength < m.StrengthInterval.High)
	}
	require.InDelta(t, 0.5, ranking[1].Strength, 1e-9)
	require.Greater(t, ranking[0].Strength, 0.55)
	require.Nil(t, rankingOf(list[:1]), "two models have the win rate of their pair")
}
