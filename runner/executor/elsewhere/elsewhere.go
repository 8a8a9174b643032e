// Package elsewhere names executors that suites in the field ask for and this
// program cannot drive. Such a suite is understood and can be checked; its
// trials end in error, which says what to do, unless another executor is chosen.
package elsewhere

import (
	"context"
	"fmt"

	"waza/eval"
	"waza/runner/executor"
)

// CopilotSDK is the agent most published suites name.
var CopilotSDK = kind("copilot-sdk", "GitHub Copilot, as other tools drive it. Suites may name it; waza cannot drive it, so its trials end in error.", "copilot")

func kind(name, summary string, aliases ...string) executor.Kind {
	missing := fmt.Errorf("this waza cannot drive %s; choose another executor: --executor on the command line, executor in eval.run, or config.executor", name)
	return executor.Kind{
		Kind: eval.Kind{Name: name, Aliases: aliases, Summary: summary},
		Open: func(context.Context, executor.Settings) (executor.Executor, error) {
			return absent{missing}, nil
		},
		Preflight: func(context.Context, executor.Settings) []executor.Finding {
			return []executor.Finding{{Severity: eval.Warning, Code: eval.CodeUnavailable, Message: "every trial will end in error: " + missing.Error()}}
		},
	}
}

// absent is an executor that is not there.
type absent struct{ err error }

func (absent) Capabilities() executor.Capabilities { return executor.Capabilities{} }
func (absent) Close() error                        { return nil }

func (a absent) Execute(context.Context, *executor.Trial) (executor.Outcome, error) {
	return executor.Outcome{}, executor.Permanent(a.err)
}
