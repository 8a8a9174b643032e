package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

// The report once printed "1 more trials".
func TestTrialsToDecide(t *testing.T) {
	t.Parallel()
	require.Equal(t, "1 more trial", needed(&record.Needed{Trials: 6, More: 1}))
	require.Equal(t, "2 more trials", needed(&record.Needed{Trials: 7, More: 2}))
	require.Equal(t, "more than 10,000 trials", needed(&record.Needed{}))
}
