package behavior

import (
	"testing"

	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
)

func TestMain(m *testing.M) {
	gradertest.Main(m, grader.NewRegistry(Behavior, ActionSequence, SkillInvocation, ToolConstraint, ToolCalls, Trigger))
}
