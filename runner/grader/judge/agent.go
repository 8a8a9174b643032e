package judge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"waza/eval"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/mcptools"
	"waza/runner/provider"
	"waza/runner/record"
)

// serverName is the name of the MCP server that offers tools to judging agents.
const serverName = "waza_judge"

// agentBrief is added to the brief of a judging agent. Unlike a model, an agent has a workspace
// and tools of its own.
const agentBrief = `

You are the judge. Do not do the task, and do not look at files or run commands: the directory you are in is empty, and all that counts is below. Your only way to answer is to call tools of the MCP server ` + serverName + `: %s.

%s`

// agentTime is the most time for one answer of an agent. An agent that takes longer is in a
// loop, because its tools take no time.
const agentTime = 5 * time.Minute

// askAgent lets an agent answer by calling tools, and returns the agent's last text. Each call
// starts a new session in an empty directory. It adds the cost to usage, even if it returns an
// error.
func (g *judgeGrader) askAgent(ctx context.Context, j judge, b brief, tools []tool, usage *record.Usage) (said string, err error) {
	if j.fault != nil {
		return "", j.fault
	}
	if b.temp != "" {
		if err := os.MkdirAll(b.temp, 0o700); err != nil {
			return "", err
		}
	}
	agent, err := g.env.Agent(j.agent, b.temp)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(b.temp, "waza-judge-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	server := mcp.NewServer(&mcp.Implementation{Name: serverName, Version: "1"}, &mcp.ServerOptions{
		Instructions: "Tools that record what a judge decides.",
	})
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
		server.AddTool(&mcp.Tool{Name: t.Name, Description: t.Description, InputSchema: t.Parameters}, handler(t))
	}
	reached, stop, err := mcptools.Serve(ctx, b.temp, serverName, names, server)
	if err != nil {
		return "", err
	}
	defer stop()
	transcript := executor.NewTranscript()
	ctx, cancel := context.WithTimeoutCause(ctx, agentTime, fmt.Errorf("the agent did not finish within %s", agentTime))
	defer cancel()
	out, err := agent.Execute(ctx, &executor.Trial{
		Order: &record.Order{
			TaskID: "judge", Num: 1, Suite: g.env.Suite, Task: &eval.Task{ID: "judge"}, Model: j.agentModel, Workers: 1,
		},
		Attempt: 1, Prompt: b.system + fmt.Sprintf(agentBrief, strings.Join(names, ", "), b.text),
		Dir: func() (string, error) { return dir, nil }, Env: g.env.Suite.Config.Inherited(os.Environ()),
		Expand: func(s string) string { return s }, Transcript: transcript, Logf: func(string, string, ...any) {},
		Servers: []executor.Server{reached},
	})
	transcript.Close()
	if out.Usage != nil {
		spent := g.env.Clients().Price(j.agentModel, *out.Usage, provider.Cached{})
		*usage = usage.Add(spent)
		if over := g.env.Clients().Charge(j.agentModel, spent); over != nil && err == nil {
			err = over
		}
	}
	return out.Output, agentFault(err)
}

// handler lets an agent call a tool. A faulty call gets an answer that describes the fault; it
// is not a fault of the server.
func handler(t tool) mcp.ToolHandler {
	return func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		args := req.Params.Arguments
		if len(bytes.TrimSpace(args)) == 0 {
			args = json.RawMessage("{}")
		}
		if err := t.call(args); err != nil {
			return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: err.Error()}}}, nil
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "recorded"}}}, nil
	}
}

// askAgentForm asks an agent for one answer of a form. If the agent does not call the tool, it
// asks once more; then an answer written as JSON counts, too.
func (g *judgeGrader) askAgentForm(
	ctx context.Context, j judge, b brief, a provider.Answer, usage *record.Usage,
	take func(json.RawMessage) error,
) error {
	var mu sync.Mutex // guards wrong and taken
	var wrong error
	taken := false
	t := tool{provider.Tool{Name: a.Name, Description: a.Description, Parameters: a.Schema}, func(args json.RawMessage) error {
		mu.Lock()
		defer mu.Unlock()
		err := take(args)
		if err != nil {
			wrong = err
			return err
		}
		taken = true
		return nil
	}}
	original := b.text
	for n := range 2 {
		said, err := g.askAgent(ctx, j, b, []tool{t}, usage)
		mu.Lock()
		done, why := taken, wrong
		mu.Unlock()
		if done || err != nil {
			return err
		}
		if n > 0 && usable(said, a, take) {
			return nil
		}
		if why == nil {
			why = fmt.Errorf("it did not call %s but said %s", a.Name, grader.Excerpt(g.redact.Text(said)))
		}
		wrong = why
		b.text = original + fmt.Sprintf("\n\nAn earlier answer could not be used (%s). Call %s, and do nothing else.",
			text.Clip(why.Error(), 200), a.Name)
	}
	return fmt.Errorf("no usable answer, asked twice: %w", wrong)
}

// agentFault converts an error of a judging agent to an error of the trial. It never ends the
// run, because other tasks may not need a judge.
func agentFault(err error) error {
	if stop := executor.AsStop(err); stop != nil && !stop.Orderly {
		return executor.Permanent(errors.New(stop.Error()))
	}
	return err
}
