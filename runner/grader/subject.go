package grader

import (
	"slices"
	"strings"

	"waza/eval/text"
	"waza/runner/record"
)

// Expanded returns a text of the suite with its template variables filled in.
func (s *Subject) Expanded(text string) string {
	if s.Expand == nil {
		return text
	}
	return s.Expand(text)
}

// ToolNames returns the names of the called tools, in order.
func (s *Subject) ToolNames() []string {
	names := make([]string, len(s.ToolCalls))
	for i := range s.ToolCalls {
		names[i] = s.ToolCalls[i].Name
	}
	return names
}

// CountCalls returns the number of calls of a tool.
func (s *Subject) CountCalls(tool string) int {
	n := 0
	for i := range s.ToolCalls {
		if s.ToolCalls[i].Name == tool {
			n++
		}
	}
	return n
}

// CalledTools lists the called tools for a feedback.
func (s *Subject) CalledTools() string { return ListNames(s.ToolNames()) }

// Turns returns the number of messages of the agent. An answer without a recorded message is one
// turn.
func (s *Subject) Turns() int {
	n := 0
	for i := range s.Transcript {
		if e := &s.Transcript[i]; e.Type == record.EntryMessage && e.Role != "user" && e.Role != "system" {
			n++
		}
	}
	return max(n, 1)
}

// ListNames joins names for a feedback: each once, in order of appearance.
func ListNames(names []string) string {
	var once []string
	for _, n := range names {
		if !slices.Contains(once, n) {
			once = append(once, n)
		}
		if len(once) > maxComplaints {
			once[maxComplaints] = "…"
			break
		}
	}
	if len(once) == 0 {
		return "(none)"
	}
	return text.Clip(strings.Join(once, ", "), 2*ExcerptBytes)
}
