package executor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/executor"
)

// The system prompt of a task belongs to its instructions, as it is written.
func TestSystemPromptOfTask(t *testing.T) {
	t.Parallel()
	got, err := executor.Instructions(&eval.Suite{}, &eval.Task{Inputs: eval.Inputs{SystemPrompt: "Be {{brief}}."}})
	require.NoError(t, err)
	require.Equal(t, "Be {{brief}}.", got)
}
