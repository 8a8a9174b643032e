package grader

import (
	"slices"
	"strings"

	"waza/eval/text"
	"waza/runner/record"
)

// Expanded fills the template variables of a text of the suite.
func (s *Subject) Expanded(text string) string {
	if s.Expand == nil {
		return text
	}
	return s.Expand(text)
}

// ToolNames are the names of the tools that were called, in order.
func (s *Subject) ToolNames() []string {
	names := make([]string, len(s.ToolCalls))
	for i := range s.ToolCalls {
		names[i] = s.ToolCalls[i].Name
	}
	return names
}

// CountCalls counts the calls of a tool.
func (s *Subject) CountCalls(tool string) int {
	n := 0
	for i := range s.ToolCalls {
		if s.ToolCalls[i].Name == tool {
			n++
		}
	}
	return n
}

// CalledTools lists the tools that were called, for a feedback.
func (s *Subject) CalledTools() string { return ListNames(s.ToolNames()) }

// Turns counts the messages of the agent. An answer without a recorded message
// is one turn.
func (s *Subject) Turns() int {
	n := 0
	for i := range s.Transcript {
		if e := &s.Transcript[i]; e.Type == record.EntryMessage && e.Role != "user" && e.Role != "system" {
			n++
		}
	}
	return max(n, 1)
}

// ListNames gives names for a feedback: each once, in order of appearance.
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
