package record

import "slices"

// Suspicion is a move of the agent that a forger would make. It is a reason for a person to look at
// the trial, and changes no verdict.
type Suspicion struct {
	// Rule names the rule that found it; package suspicion describes the rules.
	Rule string `json:"rule"`
	// Place is the file in the workspace, the tool call or the text with the move.
	Place string `json:"place"`
	// Evidence is an excerpt of at most 200 bytes.
	Evidence string `json:"evidence"`
}

// Suspicious reports whether the trial passed and the agent made a suspicious move.
func (res *Trial) Suspicious() bool { return res.Verdict == Passed && len(res.Suspicions) > 0 }

// MostSuspicions is the most suspicions that the result of a task lists. The trials have all.
const MostSuspicions = 5

// TrialSuspicion is a suspicious move in a trial of a task.
type TrialSuspicion struct {
	TrialNum int `json:"trialNum"`
	Suspicion
}

// SelfReported reports whether the trial passed, and a grader's part in that depends on tool calls that
// only the agent says it made.
func (res *Trial) SelfReported() bool {
	return res.Verdict == Passed && slices.ContainsFunc(res.Graders, func(g Grade) bool { return g.SelfReported && g.Passed })
}
