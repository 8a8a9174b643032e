package judge

import (
	"testing"

	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
)

func TestMain(m *testing.M) { gradertest.Main(m, grader.NewRegistry(Prompt, Similar, AnswerRelevance)) }
