package trial

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/record"
)

// Attempts append to the environment of their task at the same time. On workers, they used to
// write into the same array.
func TestEnvironmentIsNotShared(t *testing.T) {
	t.Parallel()
	env := &Env{Executors: executor.NewRegistry(), Worker: "hand"}
	list := env.shared(&record.Order{RunID: "r", TaskID: "t", Suite: &eval.Suite{}, Task: &eval.Task{ID: "t"}}).environ
	require.Contains(t, list, WorkerVariable+"=hand")
	require.Len(t, list, cap(list))
}
