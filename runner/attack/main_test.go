package attack_test

import (
	"os"
	"testing"

	"waza/runner/attack/agent"
	"waza/runner/grader/assertion"
)

func TestMain(m *testing.M) {
	agent.Main()
	assertion.Main()
	os.Exit(m.Run())
}
