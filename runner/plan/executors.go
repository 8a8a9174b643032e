package plan

import (
	"waza/runner/executor"
	"waza/runner/executor/acp"
	"waza/runner/executor/command"
	"waza/runner/executor/mock"
	"waza/runner/executor/model"
	"waza/runner/executor/remote"
)

// AgentExecutor is the executor for those who name only the agent.
const AgentExecutor = "acp"

// Executors are the built-in executors. A new one takes one line here.
var Executors = executor.NewRegistry(
	mock.Kind,
	command.Kind,
	acp.Kind,
	acp.CopilotKind,
	model.OpenAI,
	model.Anthropic,
	remote.New(nil),
)
