package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/compare"
)

// The report once printed "1 more trials".
func TestTrialsToDecide(t *testing.T) {
	t.Parallel()
	require.Equal(t, "1 more trial", needed(&compare.Needed{Trials: 6, More: 1}))
	require.Equal(t, "2 more trials", needed(&compare.Needed{Trials: 7, More: 2}))
	require.Equal(t, "more than 10,000 trials", needed(&compare.Needed{}))
}
