package runnertest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/text"
	"waza/runner"
	"waza/runner/executor"
	"waza/runner/executor/httpapi"
	"waza/runner/executor/model"
	"waza/runner/record"
)

// Agent is an executor named agent that calls a function of the test, and reports skills.
type Agent func(ctx context.Context, t *executor.Trial) (string, error)

// Execute calls the function.
func (a Agent) Execute(ctx context.Context, t *executor.Trial) (executor.Outcome, error) {
	out, err := a(ctx, t)
	return executor.Outcome{Output: out, Usage: &record.Usage{InputTokens: 1}}, err
}

// Close does nothing.
func (a Agent) Close() error { return nil }

// AgentRunner returns a runner with three executors: the agent, and those for OpenAI's API and any HTTP API.
func AgentRunner(t testing.TB, dir string, a Agent) *runner.Runner {
	t.Helper()
	return GatedRunner(t, dir, a, nil)
}

// GatedRunner is like AgentRunner, but with a gate.
func GatedRunner(t testing.TB, dir string, a Agent, gate runner.Gate) *runner.Runner {
	t.Helper()
	r, err := runner.New(runner.Options{StateDir: dir, Gate: gate, Executors: executor.NewRegistry(executor.Kind{
		Kind:         eval.Kind{Name: "agent"},
		Streams:      true,
		Capabilities: func(executor.Settings) executor.Capabilities { return executor.Capabilities{Skills: true} },
		Open:         func(context.Context, executor.Settings) (executor.Executor, error) { return a, nil },
	}, model.OpenAI, httpapi.Kind)})
	require.NoError(t, err)
	return r
}

// RunAgent runs a suite with the agent to its end.
func RunAgent(t *testing.T, files string, req record.Request, a Agent) (Result, []*record.Event) {
	t.Helper()
	r := AgentRunner(t, t.TempDir(), a)
	live := Start(t, r, files, req)
	events := Follow(t, live, 1)
	<-live.Done()
	return ResultOf(t, live), events
}

// RunFile is like RunAgent, for the suite of a file.
func RunFile(t *testing.T, path string, o eval.Options, req record.Request, a Agent) Result {
	t.Helper()
	r := AgentRunner(t, t.TempDir(), a)
	o.Vocabulary = r.Planner().Vocabulary()
	suite, found, err := r.Planner().Load(t.Context(), path, o)
	require.NoError(t, err)
	require.Empty(t, found.Errors())
	plan, err := r.Planner().Plan(t.Context(), suite, req)
	require.NoError(t, err)
	run, err := r.Start(plan)
	require.NoError(t, err)
	<-run.Done()
	return ResultOf(t, run)
}

// PairJudge is a model that prefers the output with the word WITH. Both outputs must be of the
// trial with the same number, "WITH 3" and "WITHOUT 3".
type PairJudge struct {
	mu      sync.Mutex // guards the fields below
	Strange []string
	asked   int
}

// Calls returns how often the judge was asked.
func (j *PairJudge) Calls() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.asked
}

var numbered = text.Pattern(`WITH(OUT)? (\S+)`)

func (j *PairJudge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req struct{ Messages []struct{ Content string } }
	_ = json.NewDecoder(r.Body).Decode(&req)
	text := req.Messages[len(req.Messages)-1].Content
	found := numbered().FindAllStringSubmatch(text, -1)
	j.mu.Lock()
	j.asked++
	j.mu.Unlock()
	if len(found) != 2 || found[0][2] != found[1][2] || found[0][1] == found[1][1] {
		j.mu.Lock()
		j.Strange = append(j.Strange, fmt.Sprint(found))
		j.mu.Unlock()
	}
	winner := "A"
	if len(found) > 0 && found[0][1] == "OUT" {
		winner = "B"
	}
	call := map[string]any{"name": "submit_comparison", "arguments": fmt.Sprintf(`{"winner":%q,"reason":"it has skills"}`, winner)}
	chunk, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{
		"index": 0, "finish_reason": "stop",
		"delta": map[string]any{"tool_calls": []any{map[string]any{"index": 0, "id": "1", "function": call}}},
	}}})
	fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", chunk)
}

// Grader returns the YAML of the grader that asks the judge.
func (j *PairJudge) Grader(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(j)
	t.Cleanup(srv.Close)
	return fmt.Sprintf("{name: better, type: prompt, config: {mode: pairwise, prompt: Prefer skills., model: "+
		"gpt-4o, base_url: %s/v1, api_key_command: echo sk-judge-0123456789}}",
		srv.URL)
}

// Skilled reports whether a trial was given skills.
func Skilled(t *executor.Trial) bool { return len(t.Task.Skills) > 0 }

// Says is an agent whose output states whether it had skills, and the trial.
func Says(_ context.Context, t *executor.Trial) (string, error) {
	if Skilled(t) {
		return fmt.Sprintf("WITH %s-%d", t.Task.ID, t.Num), nil
	}
	return fmt.Sprintf("WITHOUT %s-%d", t.Task.ID, t.Num), nil
}

// Skill contains the files of a skill named explainer.
const Skill = `
-- skills/explainer/SKILL.md --
---
name: explainer
description: Explains.
---
Explain.
`

// OneVerdictEach checks that each trial of the run has one verdict, and started at most once and
// before that. With compared, it also checks that no trial with a baseline started before the
// baseline's trial was over.
func OneVerdictEach(t *testing.T, res Result, events []*record.Event, compared bool) {
	t.Helper()
	started, ended := map[string]int{}, map[string]int{}
	for _, e := range events {
		key := fmt.Sprintf("%s/%d", e.TaskID, e.TrialNum)
		switch e.Type {
		case record.TrialStart:
			started[key]++
			require.Zero(t, ended[key], key)
			if base := fmt.Sprintf("%s#baseline/%d", e.TaskID, e.TrialNum); compared && e.Role == record.RoleTask {
				require.Equal(t, 1, ended[base], "%s started before its baseline was over", key)
			}
		case record.TrialComplete:
			ended[key]++
		}
	}
	total := 0
	for _, task := range res.Tasks {
		total += task.TaskRef.Trials
		require.Len(t, task.Trials, task.TaskRef.Trials, task.ID)
		for _, trial := range task.Trials {
			require.Equal(t, task.ID, trial.TaskID)
			require.Equal(t, 1, ended[fmt.Sprintf("%s/%d", trial.TaskID, trial.TrialNum)])
		}
	}
	require.Len(t, ended, total)
	for key, n := range started {
		require.Equal(t, 1, n, key)
	}
}

// Hashes returns the hashes of all trials, in order.
func Hashes(res Result) []string {
	var all []string
	for _, task := range res.Tasks {
		for _, trial := range task.Trials {
			all = append(all, trial.Hash)
		}
	}
	slices.Sort(all)
	return all
}

// Inline returns a list of tasks with ids t0, t1, … of one prompt each.
func Inline(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  - {id: t%d, prompt: x}\n", i)
	}
	return b.String()
}
