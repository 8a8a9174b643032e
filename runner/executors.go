package runner

import (
	"waza/runner/executor"
	"waza/runner/executor/command"
	"waza/runner/executor/elsewhere"
	"waza/runner/executor/mock"
)

// Executors are the built-in executors. A new one takes one line here.
var Executors = executor.NewRegistry(
	mock.Kind,
	command.Kind,
	elsewhere.CopilotSDK,
)
