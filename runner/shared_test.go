package runner_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// runShared runs a published suite unchanged, with the mock executor.
func runShared(t *testing.T, name string) (runnertest.Result, decode.Diagnostics) {
	t.Helper()
	file := filepath.Join("..", "..", "shared", "suites", filepath.FromSlash(name), "eval.yaml")
	if _, err := os.Stat(file); err != nil {
		t.Skip("the published suites are not beside this checkout")
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	r := runnertest.NewRunner(t)
	suite, ds, err := eval.Load(file, eval.Options{Vocabulary: r.Planner().Vocabulary()})
	require.NoError(t, err)
	require.Empty(t, ds.Errors())
	plan, err := r.Planner().Plan(t.Context(), suite, record.Request{})
	require.NoError(t, err)
	require.Empty(t, plan.Preflight(t.Context()).Errors())
	run, err := r.Start(plan)
	require.NoError(t, err)
	<-run.Done()
	return runnertest.ResultOf(t, run), ds
}

func TestSharedCodeExplainer(t *testing.T) {
	t.Parallel()
	res, ds := runShared(t, "microsoft-waza/code-explainer")
	require.Empty(t, ds)
	require.Equal(t, 4, res.Summary.Passed)
	require.Equal(t, 12, res.Summary.Trials.Passed)
	require.Empty(t, res.Summary.Missed)
	for _, m := range res.Summary.Metrics {
		if m.Name == "trigger_accuracy" {
			require.Nil(t, m.Value, "a mock knows nothing of triggers")
		}
	}
	require.Equal(t, 16, res.Summary.Triggers.Prompts)
	require.False(t, res.Summary.Triggers.Measured)
}

func TestSharedCosmosDB(t *testing.T) {
	t.Parallel()
	res, _ := runShared(t, "cosmosdb-agent-kit/cosmosdb-best-practices")
	require.Equal(t, 12, res.Summary.Passed)
	require.Equal(t, 12, res.Summary.Total)
}

// The canned reply satisfies some graders and not others. Graders that need token counts or
// reported skills fail, because the reply has neither.
func TestSharedGraderShowcase(t *testing.T) {
	t.Parallel()
	res, _ := runShared(t, "microsoft-waza/grader-showcase")
	got := map[string]record.Verdict{}
	for _, task := range res.Tasks {
		got[task.ID] = task.Verdict
	}
	require.Equal(t, map[string]record.Verdict{
		"action-sequence-demo-001": record.Failed,
		"behavior-demo-001":        record.Errored,
		"code-demo-001":            record.Failed,
		"file-demo-001":            record.Failed,
		"regex-demo-001":           record.Failed,
		"skill-invocation-001":     record.Errored,
	}, got)
}
