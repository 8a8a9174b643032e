package vally

import "waza/runner/internal/trajectory"

// These types are the records of results.jsonl. Numbers that nobody knows are left out.

type trialResult struct {
	Type       string                `json:"type"` // trial-result
	ItemID     string                `json:"itemId"`
	EvalName   string                `json:"evalName"`
	Stimulus   string                `json:"stimulus"`
	Model      string                `json:"model"`
	Variant    string                `json:"variant,omitempty"`
	Trial      int                   `json:"trial"`
	Status     string                `json:"status"` // success, error or skipped
	Error      string                `json:"error,omitempty"`
	DurationMS *int64                `json:"durationMs,omitempty"`
	Grade      gradeResult           `json:"gradeResult"`
	Trajectory trajectory.Trajectory `json:"trajectory"`
}

// gradeResult is the result of a trial, of a grader, or of a statement.
type gradeResult struct {
	Name     string        `json:"name,omitempty"`
	Kind     string        `json:"kind,omitempty"`
	Passed   bool          `json:"passed"`
	Score    float64       `json:"score"`
	Evidence string        `json:"evidence"`
	Details  []gradeResult `json:"details,omitempty"`
}

type runSummary struct {
	Type     string `json:"type"` // run-summary
	Passed   bool   `json:"passed"`
	EvalName string `json:"evalName"`
	RunID    string `json:"runId"`
	Status   string `json:"status"`
	Trials   int    `json:"trials"`
	Succeeds int    `json:"passedTrials"`
	Damage   string `json:"damage,omitempty"`
}
