package program

import (
	"testing"

	"waza/eval"
	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
)

func TestMain(m *testing.M) { gradertest.Main(m, grader.NewRegistry(Code, Program, Reward)) }

// patientEnv returns an environment with an empty suite and a long time limit.
func patientEnv(workers int) *grader.Env {
	env := &grader.Env{Suite: &eval.Suite{}, Workers: workers}
	env.AssertionTimeout = gradertest.Patience
	return env
}
