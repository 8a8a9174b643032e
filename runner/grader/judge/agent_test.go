package judge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
	"waza/runner/provider"
	"waza/runner/record"
)

// A house is an agent that judges. It starts the given MCP server, calls the tools in its
// script, and answers with the other lines. See [caller] for the form of answers.
type house struct {
	answer func(n int, prompt string) string
	fails  error // of each session

	mu      sync.Mutex // guards the fields below
	n       int
	prompts []string
	models  []string
	results []string
	opened  int
}

func (h *house) Needs(*eval.Suite, string) []record.Need { return nil }

func (h *house) Check(_ *eval.Suite, name string) error {
	if name != "house" {
		return fmt.Errorf("agent %s: house-agent is not installed; install it: npm install -g %s", name, name)
	}
	return nil
}

func (h *house) Open(_ executor.Settings, _ string) (executor.Executor, error) {
	h.opened++
	return h, nil
}

func (h *house) Close() error { h.opened--; return nil }

func (h *house) Execute(ctx context.Context, t *executor.Trial) (executor.Outcome, error) {
	h.mu.Lock()
	h.n++
	n := h.n
	h.prompts, h.models = append(h.prompts, t.Prompt), append(h.models, t.Model)
	h.mu.Unlock()
	out := executor.Outcome{Usage: &record.Usage{InputTokens: 100, OutputTokens: 10}}
	if h.fails != nil {
		return out, h.fails
	}
	dir, err := t.Dir()
	if err != nil {
		return out, err
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		return out, fmt.Errorf("the workspace is not empty: %v %v", left, err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "house", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: exec.Command(t.Servers[0].Command, t.Servers[0].Args...)}, nil)
	if err != nil {
		return out, err
	}
	defer session.Close()
	var said []string
	for line := range strings.Lines(h.answer(n, t.Prompt)) {
		name, args, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || !strings.HasPrefix(args, "{") {
			said = append(said, strings.TrimSpace(line))
			continue
		}
		r, err := session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
		if err != nil {
			return out, err
		}
		h.mu.Lock()
		h.results = append(h.results, r.Content[0].(*mcp.TextContent).Text)
		h.mu.Unlock()
	}
	out.Output = strings.Join(said, "\n")
	return out, nil
}

func answers(list ...string) *house {
	return &house{answer: func(n int, _ string) string { return list[min(n, len(list))-1] }}
}

// judgedBy builds a prompt grader whose judge is an agent.
func judgedBy(t *testing.T, h *house, config string, change ...func(*eval.Suite)) (*grader.Bound, *grader.Env, error) {
	t.Helper()
	suite, diagnostics := gradertest.Load(t, "prompt", config, nil)
	require.Empty(t, diagnostics.Errors())
	for _, f := range change {
		f(suite)
	}
	env := &grader.Env{Suite: suite, Workers: 2}
	env.Agents = h
	env.Model = "model-of-the-agent-under-test"
	env.Providers = provider.NewPool(provider.PoolOptions{Getenv: func(string) string { return "" }})
	t.Cleanup(env.Providers.Close)
	t.Cleanup(env.Close)
	b, err := gradertest.Registry.Bind(suite.Graders[0], env)
	return b, env, err
}

const byHouse = "judge: {agent: house}\n"

func TestAgentsJudge(t *testing.T) {
	t.Parallel()
	const verdict = `submit_verdict {"score":0.75,"passed":true,"reason":"fine"}`
	for _, tc := range []struct {
		name   string
		house  *house
		config string
		asked  int
		want   gradertest.Verdict
	}{
		{"verdict", answers(verdict + "\ndone"), "prompt: Is it good?\n", 1, gradertest.Verdict{Score: 0.75, Passed: true}},
		{
			"the last verdict counts",
			answers(`submit_verdict {"score":0,"passed":false,"reason":"r"}` + "\n" + verdict), "prompt: p\n", 1,
			gradertest.Verdict{Score: 0.75, Passed: true},
		},
		{
			"corrects itself", answers(`submit_verdict {"score":7,"passed":true,"reason":"r"}` + "\n" + verdict),
			"prompt: p\n", 1, gradertest.Verdict{Score: 0.75, Passed: true},
		},
		{"asked once more", answers("It is good.", verdict), "prompt: p\n", 2, gradertest.Verdict{Score: 0.75, Passed: true}},
		{
			"JSON when asked again",
			answers("It is good.", `My verdict: {"score":0.5,"passed":false,"reason":"so so"}`), "prompt: p\n", 2,
			gradertest.Scores(0.5, "house (0.50): so so"),
		},
		{
			"no verdict", answers("It is good."), "prompt: p\n", 2,
			gradertest.Errors(`judge house: no usable answer, asked twice: it did not call submit_verdict but said "It is good."`),
		},
		{
			"wrong twice", answers(`submit_verdict {"score":7,"passed":true,"reason":"r"}`), "prompt: p\n", 2,
			gradertest.Errors("score: 7, expected a number from 0 to 1"),
		},
		{
			"criteria",
			answers("set_waza_grade_pass {\"description\":\"a\"}\nset_waza_grade_fail {\"description\":\"b\",\"reason\":\"r\"}"),
			fieldRubric, 1, gradertest.Scores(0.5, "fail: b: r"),
		},
		{"criteria never called", answers("Fine."), fieldRubric, 2, gradertest.Scores(0, "asked twice")},
		{"criteria as structured output", answers("set_waza_grade_pass {}"), fieldRubric + "answer: json_schema\n", 1, gradertest.Passes()},
		{"several models", answers(verdict), "prompt: p\njudges: [a, b, c]\n", 3, gradertest.Verdict{Score: 0.75, Passed: true}},
		{
			"pairwise", answers(`submit_comparison {"winner":"A","reason":"first"}`),
			"prompt: p\nmode: pairwise\nreference: r\n", 2, gradertest.Verdict{Score: 0.5, Passed: true},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b, env, err := judgedBy(t, tc.house, byHouse+tc.config)
			require.NoError(t, err)
			got := gradertest.RequireVerdict(t, b, gradertest.Subject("hello"), tc.want)
			require.Equal(t, tc.asked, tc.house.n)
			require.Equal(t, int64(100*tc.asked), got.Usage.InputTokens, "what judging cost")
			env.Close()
			require.Zero(t, tc.house.opened, "the agent is closed with the run")
		})
	}
}

// The brief fences the trial's data for agents as for models, and the model of the agent under
// test never judges.
func TestAgentBrief(t *testing.T) {
	t.Parallel()
	h := answers("set_waza_grade_pass {}")
	b, _, err := judgedBy(t, h, byHouse+fieldRubric)
	require.NoError(t, err)
	gradertest.RequireVerdict(t, b, gradertest.Subject("the output"), gradertest.Passes())
	for _, part := range []string{
		"You judge the work of an AI agent", "MCP server waza_judge: set_waza_grade_pass, set_waza_grade_fail",
		"<<<BEGIN output ", "the output",
	} {
		require.Contains(t, h.prompts[0], part)
	}
	require.Equal(t, []string{""}, h.models)
	require.Equal(t, []string{"recorded"}, h.results)

	h = answers("set_waza_grade_pass {}")
	b, _, err = judgedBy(t, h, fieldRubric, func(s *eval.Suite) { s.Config.Judge.Agent, s.Config.JudgeModel = "house", "j-1" })
	require.NoError(t, err)
	gradertest.RequireVerdict(t, b, gradertest.Subject("x"), gradertest.Passes())
	require.Equal(t, []string{"j-1"}, h.models)
}

// If an agent cannot judge, the trials that it should judge are errors, and the run continues.
func TestAgentsThatCannotJudge(t *testing.T) {
	t.Parallel()
	h := &house{fails: &executor.StopError{Err: errors.New("house: the agent is not logged in")}}
	b, _, err := judgedBy(t, h, byHouse+"prompt: p\n")
	require.NoError(t, err)
	_, err = b.Grade(context.Background(), gradertest.Subject("x"))
	require.ErrorContains(t, err, "judge house: house: the agent is not logged in")
	require.Nil(t, executor.AsStop(err))
	require.True(t, executor.IsPermanent(err))

	_, env, err := judgedBy(t, h, "judge: {agent: nobody}\nprompt: p\n")
	require.ErrorContains(t, err, "house-agent is not installed")
	require.Nil(t, executor.AsStop(err))
	findings := Prompt.Preflight(context.Background(), env.Suite.Graders, env)
	require.Len(t, findings, 1)
	require.Contains(t, findings[0].Message, "install it: npm install -g nobody; trials with this grader end in error")
	env.Agents = nil
	require.ErrorIs(t, env.Suite.Graders[0].Options.(*PromptOptions).lacksJudge(context.Background(), env), grader.ErrNoAgents)
}
