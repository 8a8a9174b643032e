package grader

import (
	"strings"

	"waza/runner/record"
)

// A CallReader is a grader whose score depends on tool calls: on those that it names, or on all.
type CallReader interface {
	ToolNamer
	// ReadsAllCalls reports whether the score also depends on calls of tools that the grader does
	// not name, for example on their number.
	ReadsAllCalls() bool
}

// selfReportedNote follows the feedback of a grade that depends on the word of the agent.
const selfReportedNote = "(tool calls self-reported by the agent)"

// noteSelfReported adds to the grade that calls on which it depends are self-reported.
func (b *Bound) noteSelfReported(r *record.Grade, s *Subject) {
	g, ok := b.grader.(CallReader)
	if !ok {
		return
	}
	for i := range s.ToolCalls {
		if c := &s.ToolCalls[i]; c.SelfReported && (g.ReadsAllCalls() || g.NamesTool(s, c.Name)) {
			r.SelfReported = true
			r.Feedback = strings.TrimPrefix(r.Feedback+" "+selfReportedNote, " ")
			return
		}
	}
}
