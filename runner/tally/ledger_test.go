package tally_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/runnertest"
)

// spendingSuite returns a suite with a program as agent and a judge. The first attempt at each
// trial ends in error. Each call takes 60 and 40 tokens, which cost $0.001 for the agent and
// $0.01 for the judge.
func spendingSuite(t *testing.T, s *runnertest.JudgeServer, config string) string {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return fmt.Sprintf(`-- eval.yaml --
name: spending
config:
  executor: command
  command: 'echo "{\"type\":\"usage\",\"input_tokens\":60,\"output_tokens\":40}" >&3; echo "$WAZA_PROMPT"; test "$WAZA_PROMPT" = "attempt 2"'
  model: mine
  prices: {mine: {input: 10, output: 10}, judge: {input: 100, output: 100}}
  prompt_as: env
  retry_errors: 1
  %s
graders:
  - {name: judge, type: prompt, config: {rubric: is it fine, model: judge, base_url: %s/v1, api_key_command: echo %s}}
tasks: [{id: a, prompt: 'attempt {{attempt}}'}]
`, config, srv.URL, runnertest.SecretKey)
}

func requireUsage(t *testing.T, requests int, usd float64, u *record.Usage) {
	t.Helper()
	require.NotNil(t, u)
	require.EqualValues(t, 100*requests, u.Total())
	require.InDelta(t, usd, u.CostUSD, 1e-12)
}

// The cost of a run used to include only its agents, without prices and earlier attempts, while
// the budget counted everything.
func TestLedger(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.Run(t, spendingSuite(t, &runnertest.JudgeServer{}, "trials_per_task: 3"), record.Request{})
	require.Equal(t, 3, res.Summary.Trials.Passed, "%+v", res.Task(t, "a").Reasons)
	s := res.Summary
	requireUsage(t, 9, 0.036, s.Usage)
	requireUsage(t, 6, 0.006, s.UsageByRole.Agent)
	requireUsage(t, 3, 0.03, s.UsageByRole.Judges)
	requireUsage(t, 9, 0.036, res.Task(t, "a").Usage)
	trial := res.Trial(t, "a", 1)
	requireUsage(t, 1, 0.001, trial.Usage)
	requireUsage(t, 1, 0.001, trial.Attempts[0].Usage)
	requireUsage(t, 2, 0.002, trial.Spent.Agent)
	requireUsage(t, 1, 0.01, trial.Spent.Judges)
}

// A run that its budget stopped reports the same cost as its summary.
func TestBudgetStopsAtTheLedger(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.Run(t, spendingSuite(t, &runnertest.JudgeServer{}, "trials_per_task: 20\n  max_cost: 0.2"), record.Request{})
	require.Equal(t, record.StatusCancelled, res.Status)
	require.Contains(t, res.Error, fmt.Sprintf("$%.4f spent", res.Summary.Usage.CostUSD))
	require.Positive(t, res.Summary.UsageByRole.Judges.CostUSD)
}

// Unusable answers of judges and repeated questions cost money, too.
func TestJudgesThatFailAreInTheLedger(t *testing.T) {
	t.Parallel()
	s := &runnertest.JudgeServer{}
	files := spendingSuite(t, s, "trials_per_task: 3\n  workers: 1")
	s.Fail(http.StatusBadRequest, 2)
	r, id, _ := runnertest.FinishedRun(t, files)
	spent := runnertest.ResultOf(t, runnertest.Reopened(t, r, id)).Summary
	require.Equal(t, 1, spent.Trials.Errors)
	requireUsage(t, 2, 0.02, spent.UsageByRole.Judges)
	s.Fail(0, 0)
	_, res := runnertest.GradeAgain(t, r, id, files, regrade.GradeOptions{Rejudge: true})
	requireUsage(t, 5, 0.05, res.Summary.UsageByRole.Judges)
	requireUsage(t, 6, 0.006, res.Summary.UsageByRole.Agent)
}

// A reused trial costs nothing again.
func TestLedgerOfCachedTrials(t *testing.T) {
	t.Parallel()
	s := &runnertest.JudgeServer{}
	files := spendingSuite(t, s, "trials_per_task: 3")
	r := runnertest.NewRunner(t)
	<-runnertest.Start(t, r, files, record.Request{Cache: true}).Done()
	again := runnertest.Start(t, r, files, record.Request{Cache: true})
	<-again.Done()
	res := runnertest.ResultOf(t, again)
	require.Equal(t, 3, res.Summary.TrialsCached)
	requireUsage(t, 9, 0.036, res.Summary.Usage)
	requireUsage(t, 9, 0.036, res.Summary.UsageCached)
	require.EqualValues(t, 3, s.Requests.Load())
}

func TestTotalsAdd(t *testing.T) {
	t.Parallel()
	counted, apart := record.Usage{InputTokens: 60, OutputTokens: 40}, record.Usage{TotalTokens: 100}
	require.EqualValues(t, 200, counted.Add(apart).Total())
	require.EqualValues(t, 200, apart.Add(counted).Total())
	require.EqualValues(t, 300, counted.Add(counted).Add(apart).Total())
}
