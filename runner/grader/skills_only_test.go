package grader

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
)

func TestIsSkillsOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		options any
		want    bool
		waits   bool
	}{
		{"pairwise", &PromptOptions{Mode: modePairwise}, true, true},
		{"pairwise with a reference", &PromptOptions{Mode: modePairwise, Reference: "x"}, false, false},
		{"independent", &PromptOptions{Mode: modeIndependent}, false, false},
		{"skill_invocation", &SkillInvocationOptions{}, true, false},
		{"trigger", &TriggerOptions{}, true, false},
		{"text", &TextOptions{}, false, false},
		{"no options", nil, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, IsSkillsOnly(&eval.Grader{Options: c.options}))
			require.Equal(t, c.waits, ComparesWithBaseline(&eval.Grader{Options: c.options}))
		})
	}
}

// What a grader says of itself is in its results, so that a record can be
// compared without the suite.
func TestResultsTellSkillsOnly(t *testing.T) {
	t.Parallel()
	r, err := ForTrigger("mine", true).Grade(t.Context(), subject("", using("mine")))
	require.NoError(t, err)
	require.True(t, r.Passed)
	require.True(t, r.SkillsOnly)
	spec := &eval.Grader{Type: "skill_invocation", Options: &SkillInvocationOptions{RequiredSkills: []string{"mine"}, Mode: modeInOrder, AllowExtra: true}}
	b, err := Builtin.Bind(spec, &Env{Suite: &eval.Suite{}})
	require.NoError(t, err)
	r, err = b.Grade(t.Context(), subject("", using("mine")))
	require.NoError(t, err)
	require.True(t, r.SkillsOnly)
}

// The tests of a skill are for that skill, whatever the suite is for.
func TestForTrigger(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		skill  string
		should bool
		used   []string
		passed bool
	}{
		{"mine", true, []string{"other", "mine"}, true},
		{"mine", true, []string{"other"}, false},
		{"mine", false, []string{"other"}, true},
		{"mine", false, []string{"mine"}, false},
		{"", true, []string{"any"}, true},
		{"", false, nil, true},
	} {
		r, err := ForTrigger(c.skill, c.should).Grade(t.Context(), subject("", using(c.used...)))
		require.NoError(t, err)
		require.Equal(t, c.passed, r.Passed, "%+v", c)
	}
}
