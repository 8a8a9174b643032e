package plan

import (
	"waza/runner/executor"
	"waza/runner/executor/acp"
	"waza/runner/executor/browser"
	"waza/runner/executor/command"
	"waza/runner/executor/httpapi"
	"waza/runner/executor/mock"
	"waza/runner/executor/model"
	"waza/runner/executor/remote"
	"waza/runner/executor/router"
)

// AgentExecutor is the default executor when only an agent is named.
const AgentExecutor = "acp"

// Executors are the built-in executors. A new one needs one line here.
var Executors = executor.NewRegistry(
	mock.Kind,
	command.Kind,
	acp.Kind,
	acp.CopilotKind,
	acp.ClaudeKind,
	acp.CodexKind,
	model.OpenAI,
	model.Anthropic,
	httpapi.Kind,
	remote.New(nil),
	browser.New(nil),
	router.New(nil),
)
