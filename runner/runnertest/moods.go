package runnertest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner"
	"waza/runner/executor"
	"waza/runner/record"
)

// moods holds what tests of histories change between runs of one suite file.
type moods struct {
	t      *testing.T
	Runner *runner.Runner
	State  string // directory of the runner
	File   string
	Flag   string // path of a file that a grader checks
	// agent is the current behavior of the agent.
	agent atomic.Pointer[Agent]
	// Judge makes the judge pass trials when it is set.
	Judge atomic.Bool
	Runs  []string
}

// NewMoods returns an agent whose answers can be changed between runs.
func NewMoods(t *testing.T) *moods {
	t.Helper()
	m := &moods{t: t, State: t.TempDir(), Flag: filepath.Join(t.TempDir(), "flag")}
	m.Runner = AgentRunner(t, m.State, func(ctx context.Context, t *executor.Trial) (string, error) { return (*m.agent.Load())(ctx, t) })
	m.File = filepath.Join(t.TempDir(), "eval.yaml")
	m.Does(func(_ context.Context, t *executor.Trial) (string, error) { return "good", nil })
	m.Judge.Store(true)
	return m
}

func (m *moods) Does(a Agent) { m.agent.Store(&a) }

// ServeHTTP implements the judge.
func (m *moods) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"1\",\"function\":{\"name\":\"submit_verdict\",\"arguments\":\"{\\\"score\\\":0.5,\\\"passed\\\":%v,\\\"reason\\\":\\\"mood\\\"}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
		m.Judge.Load())
}

// Run runs the suite in its current form.
func (m *moods) Run(suite string, req record.Request) string {
	m.t.Helper()
	require.NoError(m.t, os.WriteFile(m.File, []byte(suite), 0o644))
	s, ds, err := eval.Load(m.File, eval.Options{Vocabulary: m.Runner.Planner().Vocabulary()})
	require.NoError(m.t, err)
	require.False(m.t, ds.HasErrors(), "%v", ds)
	plan, err := m.Runner.Planner().Plan(m.t.Context(), s, req)
	require.NoError(m.t, err)
	run, err := m.Runner.Start(plan)
	require.NoError(m.t, err)
	<-run.Done()
	m.Runs = append(m.Runs, run.ID())
	return run.ID()
}

func (m *moods) Suite() string {
	srv := httptest.NewServer(m)
	m.t.Cleanup(srv.Close)
	return fmt.Sprintf(`name: moody
config: {executor: agent, trials_per_task: 2}
tasks:
  - {id: agent, prompt: x, graders: [{name: good, type: text, config: {contains: [good]}}]}
  - {id: judged, prompt: x, graders: [{name: mood, type: prompt, config: {prompt: 'Is it fine?', model: gpt-4o, base_url: %s/v1, api_key_command: echo sk-judge-0123456789}}]}
  - {id: program, prompt: x, graders: [{name: flag, type: program, config: {command: sh, args: [-c, "test ! -e %s"]}}]}
  - {id: regraded, prompt: x, graders: [{name: good, type: text, config: {contains: [good]}}]}
  - {id: changed, prompt: x, graders: [{name: good, type: text, config: {contains: [good]}}]}
  - {id: offline, prompt: x, graders: [{name: good, type: text, config: {contains: [good]}}]}
  - {id: slow, prompt: x, timeout_seconds: 1, graders: [{name: good, type: text, config: {contains: [good]}}]}
  - {id: stable, prompt: x, graders: [{name: good, type: text, config: {contains: [good]}}]}
`, srv.URL, m.Flag)
}
