package runner_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner"
	"waza/runner/executor"
)

// moods is what tests of histories change between runs of one suite file.
type moods struct {
	t      *testing.T
	runner *runner.Runner
	file   string
	flag   string // a file that a grader looks for
	// agent says what the agent does.
	agent atomic.Pointer[agent]
	// judge lets pass when it is set.
	judge atomic.Bool
	runs  []string
}

func newMoods(t *testing.T) *moods {
	t.Helper()
	m := &moods{t: t, flag: filepath.Join(t.TempDir(), "flag")}
	m.runner = agentRunner(t, t.TempDir(), func(ctx context.Context, t *executor.Trial) (string, error) { return (*m.agent.Load())(ctx, t) })
	m.file = filepath.Join(t.TempDir(), "eval.yaml")
	m.does(func(_ context.Context, t *executor.Trial) (string, error) { return "good", nil })
	m.judge.Store(true)
	return m
}

func (m *moods) does(a agent) { m.agent.Store(&a) }

// ServeHTTP is the judge.
func (m *moods) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"1\",\"function\":{\"name\":\"submit_verdict\",\"arguments\":\"{\\\"score\\\":0.5,\\\"passed\\\":%v,\\\"reason\\\":\\\"mood\\\"}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n", m.judge.Load())
}

// run runs the suite as it is written now.
func (m *moods) run(suite string, req runner.Request) string {
	m.t.Helper()
	require.NoError(m.t, os.WriteFile(m.file, []byte(suite), 0o644))
	s, ds, err := eval.Load(m.file, eval.Options{Vocabulary: m.runner.Planner().Vocabulary()})
	require.NoError(m.t, err)
	require.False(m.t, ds.HasErrors(), "%v", ds)
	plan, err := m.runner.Planner().Plan(m.t.Context(), s, req)
	require.NoError(m.t, err)
	run, err := m.runner.Start(plan)
	require.NoError(m.t, err)
	<-run.Done()
	m.runs = append(m.runs, run.ID())
	return run.ID()
}

func (m *moods) history(o runner.HistoryOptions) *runner.History {
	m.t.Helper()
	h, err := m.runner.Catalog().History(m.t.Context(), o)
	require.NoError(m.t, err)
	return h
}

func taskOf(t *testing.T, h *runner.History, id string) *runner.TaskHistory {
	t.Helper()
	for i := range h.Tasks {
		if h.Tasks[i].ID == id {
			return &h.Tasks[i]
		}
	}
	t.Fatalf("no task %s", id)
	return nil
}

func (m *moods) suite() string {
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
`, srv.URL, m.flag)
}

// Each flip is put down to what made it.
func TestHistoryAttributesFlips(t *testing.T) {
	t.Parallel()
	m := newMoods(t)
	suite := m.suite()
	m.run(suite, runner.Request{})

	m.judge.Store(false)
	require.NoError(t, os.WriteFile(m.flag, nil, 0o644))
	m.does(func(ctx context.Context, t *executor.Trial) (string, error) {
		switch t.Task.ID {
		case "agent", "changed":
			return "bad", nil
		case "offline":
			return "", executor.Permanent(errors.New("no network"))
		case "slow":
			return "", fmt.Errorf("first event: %w", executor.ErrTimeout)
		}
		return "good", nil
	})
	edited := strings.NewReplacer("{id: changed, prompt: x", "{id: changed, prompt: y",
		"{id: regraded, prompt: x, graders: [{name: good, type: text, config: {contains: [good]}}]}",
		"{id: regraded, prompt: x, graders: [{name: good, type: text, config: {contains: [best]}}]}").Replace(suite)
	m.run(edited, runner.Request{})
	m.does(func(_ context.Context, t *executor.Trial) (string, error) { return "good", nil })
	m.run(edited, runner.Request{})

	h := m.history(runner.HistoryOptions{})
	require.Len(t, h.Runs, 3)
	require.Equal(t, m.runs[0], h.Runs[0].RunID, "oldest first")
	type flip struct {
		at           int
		was, verdict runner.Verdict
		cause        runner.Cause
		detail       string
	}
	for id, want := range map[string][]flip{
		"agent":    {{1, runner.Passed, runner.Failed, runner.CauseAgent, ""}, {2, runner.Failed, runner.Passed, runner.CauseAgent, ""}},
		"judged":   {{1, runner.Passed, runner.Failed, runner.CauseJudge, "mood"}},
		"program":  {{1, runner.Passed, runner.Failed, runner.CauseGrader, "flag"}},
		"regraded": {{1, runner.Passed, runner.Failed, runner.CauseGrader, "other graders: good"}},
		"changed":  {{1, runner.Passed, runner.Failed, runner.CauseChange, "other prompt, files, skills, program or settings"}, {2, runner.Failed, runner.Passed, runner.CauseAgent, ""}},
		"offline":  {{1, runner.Passed, runner.Errored, runner.CauseInfrastructure, "no network"}, {2, runner.Errored, runner.Passed, runner.CauseInfrastructure, "no network"}},
		"slow":     {{1, runner.Passed, runner.TimedOut, runner.CauseInfrastructure, "time was up"}, {2, runner.TimedOut, runner.Passed, runner.CauseInfrastructure, "time was up"}},
		"stable":   nil,
	} {
		var got []flip
		task := taskOf(t, h, id)
		for _, f := range task.Flips {
			at := map[string]int{m.runs[1]: 1, m.runs[2]: 2}[f.Run]
			require.Equal(t, m.runs[at-1], f.From)
			got = append(got, flip{at, f.Was, f.Verdict, f.Cause, f.Detail})
		}
		require.Equal(t, want, got, id)
		require.Len(t, task.Runs, 3)
	}
	agentTask := taskOf(t, h, "agent")
	require.Equal(t, map[runner.Cause]int{runner.CauseAgent: 2}, agentTask.Causes)
	require.Equal(t, 6, agentTask.Counted)
	require.InDelta(t, 2.0/6, *agentTask.Flakiness, 1e-12)
	require.InDelta(t, 2.0/6, *taskOf(t, h, "changed").Flakiness, 1e-12, "two and two since it changed, none before")
	require.Equal(t, runner.ChangedExecution, taskOf(t, h, "changed").Runs[1].Changed)
	require.Equal(t, runner.ChangedGraders, taskOf(t, h, "regraded").Runs[1].Changed)
	require.Zero(t, *taskOf(t, h, "regraded").Flakiness)
	require.Zero(t, *taskOf(t, h, "stable").Flakiness)
	require.Equal(t, "stable", h.Tasks[len(h.Tasks)-1].ID, "in the order of the suite where all is equal")
}

// Outputs that are so large that they stand beside the journal are looked at, too.
func TestHistoryOfLargeOutputs(t *testing.T) {
	t.Parallel()
	m := newMoods(t)
	long := strings.Repeat("blah ", 60_000)
	suite := fmt.Sprintf("name: large\nconfig: {executor: agent}\ntasks:\n  - {id: same, prompt: x, graders: [{name: flag, type: program, config: {command: sh, args: [-c, \"test ! -e %s\"]}}]}\n  - {id: other, prompt: x, graders: [{name: flag, type: program, config: {command: sh, args: [-c, \"test ! -e %[1]s\"]}}]}\n", m.flag)
	for i := range 2 {
		m.does(func(_ context.Context, t *executor.Trial) (string, error) {
			if t.Task.ID == "other" {
				return long + strings.Repeat("!", i), nil
			}
			return long, nil
		})
		m.run(suite, runner.Request{})
		require.NoError(t, os.WriteFile(m.flag, nil, 0o644))
	}
	h := m.history(runner.HistoryOptions{})
	require.Equal(t, runner.CauseGrader, taskOf(t, h, "same").Flips[0].Cause)
	require.Equal(t, runner.CauseAgent, taskOf(t, h, "other").Flips[0].Cause)
}

// Within a run flips are told, too; and what was taken over from another run is no
// trial of its own.
func TestHistoryWithinRuns(t *testing.T) {
	t.Parallel()
	m := newMoods(t)
	const suite = `name: within
config: {executor: agent, trials_per_task: 4}
graders: [{name: good, type: text, config: {contains: [good]}}]
tasks: [{id: a, prompt: x}, {id: b, prompt: x}]
`
	m.does(func(_ context.Context, t *executor.Trial) (string, error) {
		if t.Task.ID == "a" && t.Num%2 == 0 {
			return "bad", nil
		}
		return "good", nil
	})
	m.run(suite, runner.Request{Cache: true})
	m.run(suite, runner.Request{Cache: true})
	h := m.history(runner.HistoryOptions{Suites: []string{"within"}})
	a := taskOf(t, h, "a")
	require.Equal(t, "a", h.Tasks[0].ID, "the flakiest first")
	require.Equal(t, 4, a.Counted, "those of the second run were taken over")
	require.InDelta(t, 0.5, *a.Flakiness, 1e-12)
	require.Equal(t, 3, a.Runs[0].Flips)
	first, err := m.runner.Catalog().Find("latest~1")
	require.NoError(t, err)
	second, err := m.runner.Catalog().Find("latest")
	require.NoError(t, err)
	compared := compare(t, runner.CompareOptions{}, first, second).Comparisons[0]
	require.Contains(t, compared.Notes, runner.ComparisonNote{Run: m.runs[1], Text: "has taken 8 trials over from the reference: of their tasks it says nothing new"})
	require.Equal(t, runner.Flip{Run: m.runs[0], Was: runner.Passed, Verdict: runner.Failed, Cause: runner.CauseAgent}, a.Flips[0])
}

func TestHistoryOfWhat(t *testing.T) {
	t.Parallel()
	m := newMoods(t)
	var none *runner.NoHistoryError
	_, err := m.runner.Catalog().History(t.Context(), runner.HistoryOptions{})
	require.ErrorAs(t, err, &none)
	const suite = "name: what\nconfig: {executor: agent}\ntasks: [{id: a, prompt: x}, {id: b, prompt: x}]\n"
	for range 4 {
		m.run(suite, runner.Request{Tasks: []string{"a"}})
	}
	m.run(suite, runner.Request{})
	for _, name := range []string{m.file, filepath.Dir(m.file), "what"} {
		require.Len(t, m.history(runner.HistoryOptions{Suites: []string{"nonsense", name}}).Runs, 5)
	}
	h := m.history(runner.HistoryOptions{Limit: 2, Tasks: []string{"b"}})
	require.Len(t, h.Tasks, 1)
	require.Equal(t, m.runs[3:], []string{h.Runs[0].RunID, h.Runs[1].RunID})
	require.Nil(t, h.Tasks[0].Runs[0], "the run does not have it")
	require.NotNil(t, h.Tasks[0].Runs[1])
	_, err = m.runner.Catalog().History(t.Context(), runner.HistoryOptions{Suites: []string{"other"}})
	require.EqualError(t, err, "no recorded run is of the suite other")
	var selection *runner.SelectionError
	_, err = m.runner.Catalog().History(t.Context(), runner.HistoryOptions{Tasks: []string{"c"}})
	require.ErrorAs(t, err, &selection)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = m.runner.Catalog().History(cancelled, runner.HistoryOptions{})
	require.ErrorIs(t, err, context.Canceled)
}

// What differs in the same way of working is no difference; what the agent says is.
func TestSameDeeds(t *testing.T) {
	t.Parallel()
	const run, other = "20261121-101500.123-abcdefghij", "20261122-101500.123-zyxwvutsrq"
	tool := func(args, result string) []executor.Entry {
		return []executor.Entry{{Type: executor.EntryToolCall, AtMS: int64(len(args)), Tool: &executor.ToolCall{ID: args, Name: "bash", Arguments: []byte(args), Result: []byte(result), DurationMS: int64(len(result))}}}
	}
	said := func(text string) []executor.Entry {
		return []executor.Entry{{Type: executor.EntryMessage, Role: "assistant", Text: text}}
	}
	for _, c := range []struct {
		what string
		same bool
		a, b []executor.Entry
	}{
		{"workspaces", true, tool(`{"path":"/srv/waza/work/`+run+`/3-a-1/x.txt"}`, `"ok"`), tool(`{"path":"/srv/waza/work/`+other+`/12-a-2/x.txt"}`, `"ok"`)},
		{"workspaces in strange places", true, said("see /Übung/waza/work/" + run + "/1-a-1/x y, and " + run), said("see /Übung/waza/work/" + other + "/2-b-3/x y, and " + other)},
		{"files of a workspace", false, said("/srv/" + run + "/1-a-1/x"), said("/srv/" + other + "/1-a-1/y")},
		{"the order of members", true, tool(`{"a":1,"b":2}`, `1`), tool(`{"b":2, "a":1}`, `1`)},
		{"times of tools", true, tool(`{}`, `"ok in 1.3s at 2026-11-21T10:15:00Z"`), tool(`{}`, `"ok in 20 ms at 2026-11-22 09:00:01.5"`)},
		{"temporary files", true, tool(`{}`, `"/tmp/go-build123/b001"`), tool(`{}`, `"/tmp/go-build999/b002"`)},
		{"ids", true, said("see call_1a2b3c4d5e6f"), said("see call_9z8y7x6w5v4u")},
		{"uuids", true, said("0b1c2d3e-0000-4000-8000-1234567890ab"), said("9b1c2d3e-0000-4000-8000-1234567890ff")},
		{"words", false, said("session_management"), said("session_validation")},
		{"times that the agent tells", false, said("it takes 5 s"), said("it takes 6 s")},
		{"arguments", false, tool(`{"a":1}`, `1`), tool(`{"a":2}`, `1`)},
		{"results", false, tool(`{"a":1}`, `1`), tool(`{"a":1}`, `2`)},
		{"thoughts", true, []executor.Entry{{Type: executor.EntryThought, Text: "hm"}}, nil},
		{"a further message", false, append(said("a"), said("b")...), said("ab")},
	} {
		a, b := runner.DigestOf(run, "out", c.a), runner.DigestOf(other, "out", c.b)
		require.Equal(t, c.same, a == b, c.what)
	}
	require.NotEqual(t, runner.DigestOf(run, "a", nil), runner.DigestOf(run, "b", nil))
}

// A history of 50 runs with 100 tasks.
func BenchmarkHistory(b *testing.B) {
	r, err := runner.New(runner.Options{StateDir: b.TempDir()})
	require.NoError(b, err)
	file := filepath.Join(b.TempDir(), "eval.yaml")
	var suite strings.Builder
	suite.WriteString("name: long\nconfig:\n  trials_per_task: 3\n  workers: 4\n  mock: {seed: 1, replies: [{match: '', trials: [2], output: bad}, {match: '', output: good}]}\ngraders: [{name: good, type: text, config: {contains: [good]}}]\ntasks:\n")
	for i := range 100 {
		fmt.Fprintf(&suite, "  - {id: t%d, prompt: x}\n", i)
	}
	require.NoError(b, os.WriteFile(file, []byte(suite.String()), 0o644))
	s, _, err := eval.Load(file, eval.Options{Vocabulary: r.Planner().Vocabulary()})
	require.NoError(b, err)
	for range 50 {
		plan, err := r.Planner().Plan(b.Context(), s, runner.Request{})
		require.NoError(b, err)
		run, err := r.Start(plan)
		require.NoError(b, err)
		<-run.Done()
	}
	for b.Loop() {
		h, err := r.Catalog().History(b.Context(), runner.HistoryOptions{Limit: 50})
		require.NoError(b, err)
		require.Len(b, h.Tasks, 100)
	}
}
