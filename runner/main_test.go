package runner_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"waza/runner/grader/assertion"
	"waza/runner/mcptools"
	"waza/runner/sandbox"
)

func TestMain(m *testing.M) {
	assertion.Main()
	mcptools.Main()
	sandbox.Main()
	os.Setenv("LC_ALL", "C") // shims of python3 warn about locales that the machine lacks
	// The engine of JavaScript patterns keeps a clock for its time limit.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock"))
}
