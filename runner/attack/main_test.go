package attack_test

import (
	"os"
	"testing"

	"waza/runner/attack/agent"
	"waza/runner/grader/assertion"
	"waza/runner/sandbox"
)

func TestMain(m *testing.M) {
	agent.Main()
	assertion.Main()
	sandbox.Main()
	os.Exit(m.Run())
}
