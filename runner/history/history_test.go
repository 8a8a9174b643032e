package history_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner"
	"waza/runner/compare"
	"waza/runner/executor"
	"waza/runner/history"
	"waza/runner/record"
	"waza/runner/record/recordtest"
	"waza/runner/runnertest"
)

func taskOf(t *testing.T, h *history.History, id string) *history.TaskHistory {
	t.Helper()
	for i := range h.Tasks {
		if h.Tasks[i].ID == id {
			return &h.Tasks[i]
		}
	}
	t.Fatalf("no task %s", id)
	return nil
}

// read returns the history of all runs of a runner.
func read(t *testing.T, r *runner.Runner, o history.Options) *history.History {
	t.Helper()
	h, err := history.Read(t.Context(), r.Catalog(), o)
	require.NoError(t, err)
	return h
}

// Each flip has its correct cause.
func TestHistoryAttributesFlips(t *testing.T) {
	t.Parallel()
	m := runnertest.NewMoods(t)
	suite := m.Suite()
	m.Run(suite, record.Request{})

	m.Judge.Store(false)
	require.NoError(t, os.WriteFile(m.Flag, nil, 0o644))
	m.Does(func(ctx context.Context, t *executor.Trial) (string, error) {
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
	m.Run(edited, record.Request{})
	m.Does(func(_ context.Context, t *executor.Trial) (string, error) { return "good", nil })
	m.Run(edited, record.Request{})

	h := read(t, m.Runner, history.Options{})
	require.Len(t, h.Runs, 3)
	require.Equal(t, m.Runs[0], h.Runs[0].RunID, "oldest first")
	type flip struct {
		at           int
		was, verdict record.Verdict
		cause        history.Cause
		detail       string
	}
	for id, want := range map[string][]flip{
		"agent":    {{1, record.Passed, record.Failed, history.CauseAgent, ""}, {2, record.Failed, record.Passed, history.CauseAgent, ""}},
		"judged":   {{1, record.Passed, record.Failed, history.CauseJudge, "mood"}},
		"program":  {{1, record.Passed, record.Failed, history.CauseGrader, "flag"}},
		"regraded": {{1, record.Passed, record.Failed, history.CauseGrader, "different graders: good"}},
		"changed": {
			{1, record.Passed, record.Failed, history.CauseChange, "different prompt, files, skills, program or settings"},
			{2, record.Failed, record.Passed, history.CauseAgent, ""},
		},
		"offline": {
			{1, record.Passed, record.Errored, history.CauseInfrastructure, "no network"},
			{2, record.Errored, record.Passed, history.CauseInfrastructure, "no network"},
		},
		"slow": {
			{1, record.Passed, record.TimedOut, history.CauseInfrastructure, "timed out"},
			{2, record.TimedOut, record.Passed, history.CauseInfrastructure, "timed out"},
		},
		"stable": nil,
	} {
		var got []flip
		task := taskOf(t, h, id)
		for _, f := range task.Flips {
			at := map[string]int{m.Runs[1]: 1, m.Runs[2]: 2}[f.Run]
			require.Equal(t, m.Runs[at-1], f.From)
			got = append(got, flip{at, f.Was, f.Verdict, f.Cause, f.Detail})
		}
		require.Equal(t, want, got, id)
		require.Len(t, task.Runs, 3)
	}
	agentTask := taskOf(t, h, "agent")
	require.Equal(t, map[history.Cause]int{history.CauseAgent: 2}, agentTask.Causes)
	require.Equal(t, 6, agentTask.Counted)
	require.InDelta(t, 2.0/6, *agentTask.Flakiness, 1e-12)
	require.InDelta(t, 2.0/6, *taskOf(t, h, "changed").Flakiness, 1e-12, "two and two since it changed, none before")
	require.Equal(t, compare.ChangedExecution, taskOf(t, h, "changed").Runs[1].Changed)
	require.Equal(t, compare.ChangedGraders, taskOf(t, h, "regraded").Runs[1].Changed)
	require.Zero(t, *taskOf(t, h, "regraded").Flakiness)
	require.Zero(t, *taskOf(t, h, "stable").Flakiness)
	require.Equal(t, "stable", h.Tasks[len(h.Tasks)-1].ID, "in the order of the suite where all is equal")
}

// Outputs that are too large for the journal are compared, too.
func TestHistoryOfLargeOutputs(t *testing.T) {
	t.Parallel()
	m := runnertest.NewMoods(t)
	long := strings.Repeat("blah ", 60_000)
	suite := fmt.Sprintf("name: large\nconfig: {executor: agent}\ntasks:\n  - {id: same, prompt: x, graders: "+
		"[{name: flag, type: program, config: {command: sh, args: [-c, \"test ! -e %s\"]}}]}\n  - {id: other, prompt: "+
		"x, graders: [{name: flag, type: program, config: {command: sh, args: [-c, \"test ! -e %[1]s\"]}}]}\n",
		m.Flag)
	for i := range 2 {
		m.Does(func(_ context.Context, t *executor.Trial) (string, error) {
			if t.Task.ID == "other" {
				return long + strings.Repeat("!", i), nil
			}
			return long, nil
		})
		m.Run(suite, record.Request{})
		require.NoError(t, os.WriteFile(m.Flag, nil, 0o644))
	}
	h := read(t, m.Runner, history.Options{})
	require.Equal(t, history.CauseGrader, taskOf(t, h, "same").Flips[0].Cause)
	require.Equal(t, history.CauseAgent, taskOf(t, h, "other").Flips[0].Cause)
}

// Flips within a run are reported, too. Trials reused from another run do not count again.
func TestHistoryWithinRuns(t *testing.T) {
	t.Parallel()
	m := runnertest.NewMoods(t)
	const suite = `name: within
config: {executor: agent, trials_per_task: 4}
graders: [{name: good, type: text, config: {contains: [good]}}]
tasks: [{id: a, prompt: x}, {id: b, prompt: x}]
`
	m.Does(func(_ context.Context, t *executor.Trial) (string, error) {
		if t.Task.ID == "a" && t.Num%2 == 0 {
			return "bad", nil
		}
		return "good", nil
	})
	m.Run(suite, record.Request{Cache: true})
	m.Run(suite, record.Request{Cache: true})
	h := read(t, m.Runner, history.Options{Suites: []string{"within"}})
	a := taskOf(t, h, "a")
	require.Equal(t, "a", recordtest.IDs(h.Tasks)[0], "the flakiest first")
	require.Equal(t, 4, a.Counted, "the trials of the second run were reused")
	require.InDelta(t, 0.5, *a.Flakiness, 1e-12)
	require.InDelta(t, 0.068, a.FlakinessInterval.Low, 1e-3)
	require.InDelta(t, 0.5, a.FlakinessInterval.High, 0, "of 2 in 4 it would be 0.932, but the rarer verdict has at most half of the trials")
	require.Equal(t, 3, a.Runs[0].Flips)
	first, err := m.Runner.Catalog().Find("", "latest~1")
	require.NoError(t, err)
	second, err := m.Runner.Catalog().Find("", "latest")
	require.NoError(t, err)
	compared := runnertest.Compare(t, compare.Options{}, first, second).Comparisons[0]
	require.Contains(t, compared.Notes,
		compare.ComparisonNote{Run: m.Runs[1], Text: "reuses 8 trials of the reference: these add no information about their tasks"})
	require.Equal(t, history.Flip{Run: m.Runs[0], Was: record.Passed, Verdict: record.Failed, Cause: history.CauseAgent}, a.Flips[0])
}

func TestHistoryOfWhat(t *testing.T) {
	t.Parallel()
	m := runnertest.NewMoods(t)
	var none *history.NoHistoryError
	_, err := history.Read(t.Context(), m.Runner.Catalog(), history.Options{})
	require.ErrorAs(t, err, &none)
	const suite = "name: what\nconfig: {executor: agent}\ntasks: [{id: a, prompt: x}, {id: b, prompt: x}]\n"
	for range 4 {
		m.Run(suite, record.Request{Tasks: []string{"a"}})
	}
	m.Run(suite, record.Request{})
	for _, name := range []string{m.File, filepath.Dir(m.File), "what"} {
		require.Len(t, read(t, m.Runner, history.Options{Suites: []string{"nonsense", name}}).Runs, 5)
	}
	h := read(t, m.Runner, history.Options{Limit: 2, Tasks: []string{"b"}})
	require.Len(t, h.Tasks, 1)
	require.Equal(t, m.Runs[3:], []string{h.Runs[0].RunID, h.Runs[1].RunID})
	require.Nil(t, recordtest.ByID(t, h.Tasks, "b").Runs[0], "the run does not have it")
	require.NotNil(t, recordtest.ByID(t, h.Tasks, "b").Runs[1])
	_, err = history.Read(t.Context(), m.Runner.Catalog(), history.Options{Suites: []string{"other"}})
	require.EqualError(t, err, "no recorded run of the suite other")
	var selection *record.SelectionError
	_, err = history.Read(t.Context(), m.Runner.Catalog(), history.Options{Tasks: []string{"c"}})
	require.ErrorAs(t, err, &selection)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = history.Read(cancelled, m.Runner.Catalog(), history.Options{})
	require.ErrorIs(t, err, context.Canceled)
}

// Incidental differences in the same behavior do not count; differences in the agent's text do.
func TestSameDeeds(t *testing.T) {
	t.Parallel()
	const run, other = "20261121-101500.123-abcdefghij", "20261122-101500.123-zyxwvutsrq"
	tool := func(args, result string) []record.Entry {
		return []record.Entry{
			{
				Type: record.EntryToolCall, AtMS: int64(len(args)),
				Tool: &record.ToolCall{ID: args, Name: "bash", Arguments: []byte(args), Result: []byte(result), DurationMS: int64(len(result))},
			},
		}
	}
	said := func(text string) []record.Entry {
		return []record.Entry{{Type: record.EntryMessage, Role: "assistant", Text: text}}
	}
	for _, c := range []struct {
		what string
		same bool
		a, b []record.Entry
	}{
		{
			"workspaces", true, tool(`{"path":"/srv/waza/work/`+run+`/3-a-1/x.txt"}`, `"ok"`),
			tool(`{"path":"/srv/waza/work/`+other+`/12-a-2/x.txt"}`, `"ok"`),
		},
		{
			"workspaces in strange places", true, said("see /Übung/waza/work/" + run + "/1-a-1/x y, and " + run),
			said("see /Übung/waza/work/" + other + "/2-b-3/x y, and " + other),
		},
		{"files of a workspace", false, said("/srv/" + run + "/1-a-1/x"), said("/srv/" + other + "/1-a-1/y")},
		{"the order of members", true, tool(`{"a":1,"b":2}`, `1`), tool(`{"b":2, "a":1}`, `1`)},
		{"times of tools", true, tool(`{}`, `"ok in 1.3s at 2026-11-21T10:15:00Z"`), tool(`{}`, `"ok in 20 ms at 2026-11-22 09:00:01.5"`)},
		{"temporary files", true, tool(`{}`, `"/tmp/go-build123/b001"`), tool(`{}`, `"/tmp/go-build999/b002"`)},
		{"ids", true, said("see call_1a2b3c4d5e6f"), said("see call_9z8y7x6w5v4u")},
		{"uuids", true, said("0b1c2d3e-0000-4000-8000-1234567890ab"), said("9b1c2d3e-0000-4000-8000-1234567890ff")},
		{"words", false, said("session_management"), said("session_validation")},
		{"times in the agent's text", false, said("it takes 5 s"), said("it takes 6 s")},
		{"arguments", false, tool(`{"a":1}`, `1`), tool(`{"a":2}`, `1`)},
		{"results", false, tool(`{"a":1}`, `1`), tool(`{"a":1}`, `2`)},
		{"thoughts", true, []record.Entry{{Type: record.EntryThought, Text: "hm"}}, nil},
		{"a further message", false, append(said("a"), said("b")...), said("ab")},
	} {
		a, b := history.DigestOf(run, "out", c.a), history.DigestOf(other, "out", c.b)
		require.Equal(t, c.same, a == b, c.what)
	}
	require.NotEqual(t, history.DigestOf(run, "a", nil), history.DigestOf(run, "b", nil))
}

// Measures a history of 50 runs with 100 tasks.
func BenchmarkHistory(b *testing.B) {
	r, err := runner.New(runner.Options{StateDir: b.TempDir()})
	require.NoError(b, err)
	file := filepath.Join(b.TempDir(), "eval.yaml")
	var suite strings.Builder
	suite.WriteString("name: long\nconfig:\n  trials_per_task: 3\n  workers: 4\n  mock: {seed: 1, replies: " +
		"[{match: '', trials: [2], output: bad}, {match: '', output: good}]}\ngraders: [{name: good, type: text, " +
		"config: {contains: [good]}}]\ntasks:\n")
	for i := range 100 {
		fmt.Fprintf(&suite, "  - {id: t%d, prompt: x}\n", i)
	}
	require.NoError(b, os.WriteFile(file, []byte(suite.String()), 0o644))
	s, _, err := eval.Load(file, eval.Options{Vocabulary: r.Planner().Vocabulary()})
	require.NoError(b, err)
	for range 50 {
		plan, err := r.Planner().Plan(b.Context(), s, record.Request{})
		require.NoError(b, err)
		run, err := r.Start(plan)
		require.NoError(b, err)
		<-run.Done()
	}
	for b.Loop() {
		h, err := history.Read(b.Context(), r.Catalog(), history.Options{Limit: 50})
		require.NoError(b, err)
		require.Len(b, h.Tasks, 100)
	}
}
