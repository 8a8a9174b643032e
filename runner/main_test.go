package runner_test

import (
	"testing"

	"go.uber.org/goleak"

	"waza/runner/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	goleak.VerifyTestMain(m)
}
