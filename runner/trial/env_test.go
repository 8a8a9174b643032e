package trial

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/record"
)

// Attempts append to the environment of their task at the same time. On workers, they used to
// write into the same array.
func TestEnvironmentIsNotShared(t *testing.T) {
	t.Parallel()
	env := &Env{Worker: "hand"}
	list := env.environ(&record.Order{RunID: "r", TaskID: "t", Suite: &eval.Suite{}, Task: &eval.Task{ID: "t"}})
	require.Contains(t, list, WorkerVariable+"=hand")
	require.Len(t, list, cap(list))
}
