package runner_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// An agent that calls a mocked tool with arguments that the mock does not expect has failed, whatever it does next.
func TestMockExpects(t *testing.T) {
	t.Parallel()
	agent := runnertest.Agent(func(ctx context.Context, trial *executor.Trial) (string, error) {
		server := trial.Servers[0]
		client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
		session, err := client.Connect(ctx, &mcp.CommandTransport{Command: exec.Command(server.Command, server.Args...)}, nil)
		if err != nil {
			return "", err
		}
		defer session.Close()
		_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "create", Arguments: json.RawMessage(trial.Prompt)})
		if err == nil && trial.Prompt != `{"title":"x"}` {
			<-ctx.Done()
			err = context.Cause(ctx)
		}
		return "done", err
	})
	r, err := runner.New(runner.Options{StateDir: t.TempDir(), Executors: executor.NewRegistry(executor.Kind{
		Kind: eval.Kind{Name: "agent", TakesServers: true},
		Open: func(context.Context, executor.Settings) (executor.Executor, error) { return agent, nil },
	})})
	require.NoError(t, err)
	live := runnertest.Start(t, r, `
-- eval.yaml --
name: s
config: {executor: agent}
mcp_mocks:
  - name: tracker
    tools:
      create: {expect_schema: {properties: {title: {type: string}}, required: [title]}, responses: [{return: created}]}
graders: [{name: done, type: text, config: {contains: [done]}}]
tasks:
  - {id: expected, prompt: '{"title":"x"}'}
  - {id: unexpected, prompt: '{"title":1}'}
`, record.Request{})
	<-live.Done()
	res := runnertest.ResultOf(t, live)
	require.Equal(t, record.Passed, res.Trial(t, "expected", 1).Verdict, res.Trial(t, "expected", 1).Error)
	trial := res.Trial(t, "unexpected", 1)
	require.Equal(t, record.Failed, trial.Verdict)
	require.Zero(t, *trial.Score)
	require.Equal(t, `the agent called tool create of MCP server tracker with arguments that the mock does not expect: {"title":1}: `+
		"title: got number, want string", trial.Error)
}
