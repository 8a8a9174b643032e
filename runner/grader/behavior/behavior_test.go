package behavior

import (
	"testing"
	"time"

	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
	"waza/runner/record"
)

func spending(in, out int64) func(*grader.Subject) {
	return func(s *grader.Subject) { s.Usage = &record.Usage{InputTokens: in, OutputTokens: out} }
}

func saying(texts ...string) func(*grader.Subject) {
	return func(s *grader.Subject) {
		s.Transcript = append(s.Transcript, record.Entry{Type: record.EntryMessage, Role: "user", Text: "go"})
		for _, text := range texts {
			s.Transcript = append(s.Transcript, record.Entry{Type: record.EntryMessage, Role: "assistant", Text: text})
		}
	}
}

func TestBehavior(t *testing.T) {
	t.Parallel()
	two := gradertest.Calling("view", "edit")
	gradertest.RunCases(t, "behavior", []gradertest.Case{
		{"few calls", "max_tool_calls: 2", nil, gradertest.Subject("", two), gradertest.Passes()},
		{
			"too many calls", "max_tool_calls: 1", nil, gradertest.Subject("", two),
			gradertest.Scores(0, "2 tool calls, more than max_tool_calls 1"),
		},
		{"no calls allowed", "max_tool_calls: 0", nil, gradertest.Subject("", two), gradertest.Scores(0, "more than max_tool_calls 0")},
		{"no calls made", "max_tool_calls: 0", nil, gradertest.Subject(""), gradertest.Passes()},
		{"few tokens", "max_tokens: 30", nil, gradertest.Subject("", spending(10, 20)), gradertest.Passes()},
		{
			"many tokens", "max_tokens: 29", nil, gradertest.Subject("", spending(10, 20)),
			gradertest.Scores(0, "30 tokens, more than max_tokens 29"),
		},
		{"unknown tokens", "max_tokens: 30\nmax_tool_calls: 9", nil, gradertest.Subject(""), gradertest.Errors("reported no token usage")},
		{"tokens not counted", "max_tokens: 30", nil, gradertest.Subject("", spending(0, 0)), gradertest.Errors("reported no token usage")},
		{
			"fast", "max_duration_ms: 10", nil,
			gradertest.Subject("", func(s *grader.Subject) { s.Duration = 10 * time.Millisecond }),
			gradertest.Passes(),
		},
		{
			"slow", "max_duration_ms: 10", nil,
			gradertest.Subject("", func(s *grader.Subject) { s.Duration = 11 * time.Millisecond }),
			gradertest.Scores(0, "11 ms"),
		},
		{
			"unknown time", "max_duration_ms: 10", nil,
			gradertest.Subject("", func(s *grader.Subject) { s.Untimed = true }),
			gradertest.Errors("cannot check max_duration_ms: the imported results have no time"),
		},
		{"few turns", "max_iterations: 2", nil, gradertest.Subject("", saying("a", "b")), gradertest.Passes()},
		{"many turns", "max_iterations: 2", nil, gradertest.Subject("", saying("a", "b", "c")), gradertest.Scores(0, "3 turns")},
		{"required tool", "required_tools: [view]", nil, gradertest.Subject("", two), gradertest.Passes()},
		{
			"required tool is missing", "required_tools: [View, edit]", nil, gradertest.Subject("", two),
			gradertest.Scores(0.5, `"View" was not called; called: view, edit`),
		},
		{"forbidden tool", "forbidden_tools: [edit, rm]", nil, gradertest.Subject("", two), gradertest.Scores(0.5, `"edit" was called 1 time`)},
		{"no forbidden tool", "forbidden_tools: [rm]", nil, gradertest.Subject("", two), gradertest.Passes()},
	})
}

func TestBehaviorOptions(t *testing.T) {
	t.Parallel()
	gradertest.RunOptions(t, "behavior", []gradertest.OptionCase{
		{"well", "max_tool_calls: 0", "other-meaning: max_tool_calls: 0 allows no tool call", nil},
		{"nothing", "{}", "checks-nothing: nothing to check", nil},
		{"no limit at all", "max_tokens: 0", "checks-nothing: nothing to check", nil},
		{"no limit", "max_tokens: 0\nmax_tool_calls: 1", "no-effect: max_tokens: 0 means no limit", nil},
		{"negative", "max_tool_calls: -1", "invalid-value: at least 0", nil},
		{"contradiction", "required_tools: [a]\nforbidden_tools: [a]", "invalid-value: both required and forbidden", nil},
		{"empty name", `required_tools: [""]`, "invalid-value: required_tools[0] is empty", nil},
	})
}
