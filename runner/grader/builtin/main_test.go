package builtin_test

import (
	"testing"

	"waza/runner/grader/builtin"
	"waza/runner/grader/internal/gradertest"
)

func TestMain(m *testing.M) { gradertest.Main(m, builtin.Graders) }
