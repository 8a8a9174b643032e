package behavior

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
	"waza/runner/record"
)

// Trigger tests grade their own skill, even if the suite is about another one.
func TestForTrigger(t *testing.T) {
	t.Parallel()
	mine := record.TriggerRef{Skill: "mine", ShouldTrigger: true}
	not := record.TriggerRef{Skill: "mine"}
	choice := record.TriggerRef{Skill: "mine", ShouldTrigger: true, AcceptableSkills: []string{"near"}, ForbiddenSkills: []string{"far"}}
	for _, c := range []struct {
		test     record.TriggerRef
		used     []string
		decided  bool
		feedback string // empty for a pass
	}{
		{mine, []string{"other", "mine"}, true, ""},
		{mine, []string{"other"}, false, `the agent did not use skill "mine"; used: other`},
		{not, []string{"other"}, false, ""},
		{not, []string{"mine"}, true, "the agent should not have used a skill, but used: mine"},
		{record.TriggerRef{ShouldTrigger: true}, []string{"any"}, true, ""},
		{record.TriggerRef{ShouldTrigger: true}, nil, false, "the agent used no skill"},
		{record.TriggerRef{}, nil, false, ""},
		{record.TriggerRef{Skill: "mine", ForbiddenSkills: []string{"far"}}, []string{"far"}, true, "the agent should not have used a skill, but used: far"},
		{record.TriggerRef{ForbiddenSkills: []string{"far"}}, []string{"other"}, false, ""},
		{record.TriggerRef{ForbiddenSkills: []string{"far"}}, []string{"far"}, true, "the agent should not have used a skill, but used: far"},
		{choice, []string{"mine"}, false, ""},
		{choice, []string{"near"}, false, ""},
		{choice, []string{"near", "far"}, true, "the agent used a forbidden skill; used: near, far"},
		{choice, []string{"other"}, false, "the agent used none of the skills mine, near; used: other"},
	} {
		requireTrigger(t, &c.test, gradertest.Subject("", gradertest.Using(c.used...)), c.decided, c.feedback)
	}
}

func requireTrigger(t *testing.T, test *record.TriggerRef, s *grader.Subject, decided bool, feedback string) {
	t.Helper()
	r, err := ForTrigger(test).Grade(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, feedback, r.Feedback, "%+v", test)
	require.Equal(t, feedback == "", r.Passed, "%+v", test)
	require.Equal(t, decided, TriggerDecided(test, s), "%+v", test)
}

// With first_tool, only the first call counts: the invocation of a skill, or a read of its SKILL.md.
func TestForTriggerByFirstTool(t *testing.T) {
	t.Parallel()
	call := func(c record.ToolCall) record.Entry { return record.Entry{Type: record.EntryToolCall, Tool: &c} }
	used := func(name string) record.Entry { return record.Entry{Type: record.EntrySkill, Text: name} }
	message := record.Entry{Type: record.EntryMessage, Role: "assistant", Text: "done"}
	read := func(file string) record.Entry {
		args, err := json.Marshal(map[string]string{"file": file})
		require.NoError(t, err)
		return call(record.ToolCall{Name: "Read", Arguments: args})
	}
	for name, c := range map[string]struct {
		entries   []record.Entry
		triggered bool
		decided   bool
		feedback  string // of the test that should trigger
	}{
		"invoked":                {[]record.Entry{message, call(record.ToolCall{Name: "Skill", Skill: "mine"}), used("mine")}, true, true, ""},
		"failed to invoke":       {[]record.Entry{call(record.ToolCall{Name: "Skill", Skill: "mine", Status: "failed"})}, true, true, ""},
		"reported without calls": {[]record.Entry{used("mine"), read("a.txt")}, true, true, ""},
		"read its SKILL.md":      {[]record.Entry{read("/w/.agents/skills/mine/SKILL.md")}, true, true, ""},
		"read another skill":     {[]record.Entry{read("skills/not-mine/SKILL.md")}, false, true, `the agent did not use skill "mine"; its first tool call was Read`},
		"named it in a command": {
			[]record.Entry{call(record.ToolCall{Name: "bash", Arguments: []byte(`{"command": "echo mine/SKILL.md"}`)})}, false, true,
			`the agent did not use skill "mine"; its first tool call was bash`,
		},
		"wrote its path": {
			[]record.Entry{call(record.ToolCall{Name: "Write", Arguments: []byte(`{"file_path": "mine/SKILL.md"}`)})}, false, true,
			`the agent did not use skill "mine"; its first tool call was Write`,
		},
		"read it by another name": {[]record.Entry{call(record.ToolCall{Name: "cat", Kind: "read", Arguments: []byte(`{"path": "C:\\mine\\SKILL.md"}`)})}, true, true, ""},
		"other file first": {
			[]record.Entry{read("a.txt"), call(record.ToolCall{Name: "Skill", Skill: "mine"}), used("mine")}, false, true,
			`the agent did not use skill "mine"; its first tool call was Read`,
		},
		"listed its folder": {[]record.Entry{read("skills/mine"), used("mine")}, false, true, `the agent did not use skill "mine"; its first tool call was Read`},
		"other skill first": {
			[]record.Entry{call(record.ToolCall{Name: "Skill", Skill: "far"}), call(record.ToolCall{Name: "Skill", Skill: "mine"})}, false, true,
			`the agent did not use skill "mine"; used: far`,
		},
		"no call": {[]record.Entry{message}, false, false, `the agent did not use skill "mine"; used: (none)`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := grader.NewSubject(grader.Subject{Transcript: c.entries})
			requireTrigger(t, &record.TriggerRef{Skill: "mine", ShouldTrigger: true, FirstTool: true}, s, c.decided, c.feedback)
			r, err := ForTrigger(&record.TriggerRef{Skill: "mine", FirstTool: true}).Grade(t.Context(), s)
			require.NoError(t, err)
			require.Equal(t, !c.triggered, r.Passed)
		})
	}
}
