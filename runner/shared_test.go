package runner_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// sharedVerdicts are the verdicts of all tasks and graders of the published suites with the mock
// executor. They were the same when graders still trusted the workspace.
const sharedVerdicts = `cosmosdb-agent-kit/cosmosdb-best-practices
  basic-usage-001 passed: response_constraints +
  edge-case-001 passed: response_constraints +
  indexing-composite-005 passed: response_constraints +
  model-embed-vs-reference-004 passed: response_constraints +
  model-ttl-expiration passed: response_constraints +
  query-optimization-003 passed: response_constraints +
  sdk-emulator-ssl-java-linux passed: response_constraints +
  sdk-go-partition-key-metadata passed: response_constraints +
  sdk-singleton-client-002 passed: response_constraints +
  security-private-endpoint-dns passed: response_constraints +
  should-not-trigger-001 passed: response_constraints +
  throughput-autoscale-006 passed: response_constraints +
microsoft-waza/code-explainer
  explain-js-async-001 passed: has_explanation +, no_errors +, explains_async_pattern +
  explain-list-comprehension-001 passed: has_explanation +, no_errors +, explains_comprehension +
  explain-python-recursion-001 passed: has_explanation +, no_errors +, explains_recursion +
  explain-sql-join-001 passed: has_explanation +, no_errors +, explains_sql_join +
microsoft-waza/grader-showcase
  action-sequence-demo-001 failed: has_output +, no_critical_errors +, expected_workflow -
  behavior-demo-001 error: has_output +, no_critical_errors +, efficient_behavior -
  code-demo-001 failed: has_output +, no_critical_errors +, output_validation -, response_format +
  file-demo-001 failed: has_output +, no_critical_errors +, readme_validation -
  regex-demo-001 failed: has_output +, no_critical_errors +, language_patterns -
  skill-invocation-001 error: has_output +, no_critical_errors +, exact_orchestration_flow -, flexible_orchestration_flow -, required_skills_check -, mentions_deployment +`

// All published suites keep their verdicts. A suite that is new there needs its lines here.
func TestSharedVerdicts(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "shared", "suites")
	found, err := filepath.Glob(filepath.Join(root, "*", "*", "eval.yaml"))
	require.NoError(t, err)
	var lines []string
	for _, file := range found {
		name, err := filepath.Rel(root, filepath.Dir(file))
		require.NoError(t, err)
		if filepath.Dir(name) == "formats" { // of other tools
			continue
		}
		res, _ := runShared(t, filepath.ToSlash(name))
		lines = append(lines, filepath.ToSlash(name))
		for _, task := range res.Tasks {
			trial := res.Trial(t, task.ID, 1)
			line := fmt.Sprintf("  %s %s:", task.ID, task.Verdict)
			for _, g := range trial.Graders {
				line += fmt.Sprintf(" %s %s,", g.Name, map[bool]string{true: "+", false: "-"}[g.Passed])
			}
			lines = append(lines, strings.TrimRight(line, ","))
		}
	}
	if len(lines) == 0 {
		t.Skip("the published suites are not beside this checkout")
	}
	require.Equal(t, sharedVerdicts, strings.Join(lines, "\n"))
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
