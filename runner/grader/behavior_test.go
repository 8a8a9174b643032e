package grader

import (
	"testing"
	"time"

	"waza/runner/record"
)

func spending(in, out int64) func(*Subject) {
	return func(s *Subject) { s.Usage = &record.Usage{InputTokens: in, OutputTokens: out} }
}

func saying(texts ...string) func(*Subject) {
	return func(s *Subject) {
		s.Transcript = append(s.Transcript, record.Entry{Type: record.EntryMessage, Role: "user", Text: "go"})
		for _, text := range texts {
			s.Transcript = append(s.Transcript, record.Entry{Type: record.EntryMessage, Role: "assistant", Text: text})
		}
	}
}

func TestBehavior(t *testing.T) {
	t.Parallel()
	two := calling("view", "edit")
	runCases(t, "behavior", []graderCase{
		{"few calls", "max_tool_calls: 2", nil, subject("", two), passes()},
		{"too many calls", "max_tool_calls: 1", nil, subject("", two), scores(0, "2 tool calls, more than max_tool_calls 1")},
		{"no calls allowed", "max_tool_calls: 0", nil, subject("", two), scores(0, "more than max_tool_calls 0")},
		{"no calls made", "max_tool_calls: 0", nil, subject(""), passes()},
		{"few tokens", "max_tokens: 30", nil, subject("", spending(10, 20)), passes()},
		{"many tokens", "max_tokens: 29", nil, subject("", spending(10, 20)), scores(0, "30 tokens, more than max_tokens 29")},
		{"unknown tokens", "max_tokens: 30\nmax_tool_calls: 9", nil, subject(""), errs("reported no token usage")},
		{"tokens not counted", "max_tokens: 30", nil, subject("", spending(0, 0)), errs("reported no token usage")},
		{"fast", "max_duration_ms: 10", nil, subject("", func(s *Subject) { s.Duration = 10 * time.Millisecond }), passes()},
		{"slow", "max_duration_ms: 10", nil, subject("", func(s *Subject) { s.Duration = 11 * time.Millisecond }), scores(0, "11 ms")},
		{"few turns", "max_iterations: 2", nil, subject("", saying("a", "b")), passes()},
		{"many turns", "max_iterations: 2", nil, subject("", saying("a", "b", "c")), scores(0, "3 turns")},
		{"required tool", "required_tools: [view]", nil, subject("", two), passes()},
		{"required tool is missing", "required_tools: [View, edit]", nil, subject("", two), scores(0.5, `"View" was not called; called: view, edit`)},
		{"forbidden tool", "forbidden_tools: [edit, rm]", nil, subject("", two), scores(0.5, `"edit" was called 1 time`)},
		{"no forbidden tool", "forbidden_tools: [rm]", nil, subject("", two), passes()},
	})
}

func TestBehaviorOptions(t *testing.T) {
	t.Parallel()
	runOptions(t, "behavior", []optionCase{
		{"well", "max_tool_calls: 0", "", nil},
		{"nothing", "{}", "checks-nothing: nothing to check", nil},
		{"no limit at all", "max_tokens: 0", "checks-nothing: nothing to check", nil},
		{"no limit", "max_tokens: 0\nmax_tool_calls: 1", "no-effect: max_tokens: 0 means no limit", nil},
		{"negative", "max_tool_calls: -1", "invalid-value: at least 0", nil},
		{"contradiction", "required_tools: [a]\nforbidden_tools: [a]", "invalid-value: both required and forbidden", nil},
		{"empty name", `required_tools: [""]`, "invalid-value: required_tools[0] is empty", nil},
	})
}
