package compare

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/stats"
	"waza/runner/tally"
)

// One of 20 tasks differs much. Its shrunken difference is smaller than its difference, and larger
// than the mean one.
func TestShrunkenDifferences(t *testing.T) {
	t.Parallel()
	p := &pairing{}
	for i := range 20 {
		pair := &taskPair{ref: &sideTask{id: fmt.Sprint(i)}, run: &sideTask{id: fmt.Sprint(i)}}
		pair.A = tally.TaskSide{Share: stats.Share{Passed: 1 + i%4, N: 5}}
		pair.B = tally.TaskSide{Share: stats.Share{Passed: 1 + i/4%4, N: 5}}
		if i == 0 {
			pair.A.Share.Passed, pair.B.Share.Passed = 5, 0
		}
		p.pairs = append(p.pairs, pair)
		p.result.Tasks = append(p.result.Tasks, TaskComparison{ID: pair.ref.id})
	}
	p.shrink()
	require.NotNil(t, p.result.Tasks[0].Shrunken)
	require.Less(t, *p.result.Tasks[0].Shrunken, -0.2)
	require.Greater(t, *p.result.Tasks[0].Shrunken, -0.99)
	p.pairs, p.result.Tasks = p.pairs[:4], make([]TaskComparison, 4)
	p.shrink()
	require.Nil(t, p.result.Tasks[0].Shrunken)
}
