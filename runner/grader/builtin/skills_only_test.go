package builtin_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/grader"
	"waza/runner/grader/behavior"
	"waza/runner/grader/builtin"
	"waza/runner/grader/internal/gradertest"
	"waza/runner/grader/judge"
	"waza/runner/grader/output"
	"waza/runner/record"
)

func TestIsSkillsOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		options any
		want    bool
		waits   bool
	}{
		{"pairwise", &judge.PromptOptions{Mode: "pairwise"}, true, true},
		{"pairwise with a reference", &judge.PromptOptions{Mode: "pairwise", Reference: "x"}, false, false},
		{"independent", &judge.PromptOptions{Mode: "independent"}, false, false},
		{"skill_invocation", &behavior.SkillInvocationOptions{}, true, false},
		{"trigger", &behavior.TriggerOptions{}, true, false},
		{"text", &output.TextOptions{}, false, false},
		{"no options", nil, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, grader.IsSkillsOnly(&eval.Grader{Options: c.options}))
			require.Equal(t, c.waits, judge.ComparesWithBaseline(&eval.Grader{Options: c.options}))
		})
	}
}

// Results record that a grader is for skills only, so that a record can be compared without the
// suite.
func TestResultsRecordSkillsOnly(t *testing.T) {
	t.Parallel()
	r, err := behavior.ForTrigger(&record.TriggerRef{Skill: "mine", ShouldTrigger: true}).Grade(t.Context(), gradertest.Subject("", gradertest.Using("mine")))
	require.NoError(t, err)
	require.True(t, r.Passed)
	require.True(t, r.SkillsOnly)
	spec := &eval.Grader{
		Type:    "skill_invocation",
		Options: &behavior.SkillInvocationOptions{RequiredSkills: []string{"mine"}, Mode: "in_order", AllowExtra: true},
	}
	b, err := builtin.Graders.Bind(spec, &grader.Env{Suite: &eval.Suite{}})
	require.NoError(t, err)
	r, err = b.Grade(t.Context(), gradertest.Subject("", gradertest.Using("mine")))
	require.NoError(t, err)
	require.True(t, r.SkillsOnly)
}
