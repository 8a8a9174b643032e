package grader

import (
	"slices"

	"waza/runner/record"
)

// A ToolNamer is a grader that names tools. Different agents call the same tool by different
// names. If the grader does not name a tool by the agent's own name, it sees the call under an
// alias that it does name, see [executor.Capabilities]. Graders that do not implement ToolNamer
// see the agent's names.
type ToolNamer interface {
	// NamesTool reports whether the grader refers to a tool by that name.
	NamesTool(s *Subject, name string) bool
}

// translated returns s with tool names replaced by the aliases that the grader uses. names maps
// each such alias to the agent's own name; it is nil if nothing was replaced.
func (b *Bound) translated(s *Subject) (subject *Subject, names map[string]string) {
	g, ok := b.grader.(ToolNamer)
	if !ok || len(s.Capabilities.ToolAliases) == 0 {
		return s, nil
	}
	var calls []record.ToolCall
	for i := range s.ToolCalls {
		own := s.ToolCalls[i].Name
		aliases := s.Capabilities.ToolAliases[own]
		if len(aliases) == 0 || g.NamesTool(s, own) {
			continue
		}
		at := slices.IndexFunc(aliases, func(name string) bool { return g.NamesTool(s, name) })
		if at < 0 {
			continue
		}
		if calls == nil {
			calls, names = slices.Clone(s.ToolCalls), map[string]string{}
		}
		calls[i].Name = aliases[at]
		names[aliases[at]] = own
	}
	if calls == nil {
		return s, nil
	}
	with := *s
	with.ToolCalls = calls
	return &with, names
}
