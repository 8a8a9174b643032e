package vally

//
// These types are the records of results.jsonl. Numbers that nobody knows are left out.

type trialResult struct {
	Type       string      `json:"type"` // trial-result
	ItemID     string      `json:"itemId"`
	EvalName   string      `json:"evalName"`
	Stimulus   string      `json:"stimulus"`
	Model      string      `json:"model"`
	Variant    string      `json:"variant,omitempty"`
	Trial      int         `json:"trial"`
	Status     string      `json:"status"` // success, error or skipped
	Error      string      `json:"error,omitempty"`
	DurationMS *int64      `json:"durationMs,omitempty"`
	Grade      gradeResult `json:"gradeResult"`
	Trajectory trajectory  `json:"trajectory"`
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

type trajectory struct {
	ID       string            `json:"id"`
	Stimulus stimulus          `json:"stimulus"`
	Events   []event           `json:"events"`
	Metrics  metrics           `json:"metrics"`
	Output   string            `json:"output"`
	Metadata map[string]string `json:"metadata"`
}

type stimulus struct {
	Name   string `json:"name"`
	Prompt string `json:"prompt"`
}

type event struct {
	Type      string         `json:"type"`
	Timestamp string         `json:"timestamp,omitempty"`
	Data      map[string]any `json:"data"`
}

type metrics struct {
	WallTimeMS *int64  `json:"wallTimeMs,omitempty"`
	Turns      int     `json:"turnCount"`
	ToolCalls  int     `json:"toolCallCount"`
	Tokens     *tokens `json:"tokenUsage,omitempty"`
}

type tokens struct {
	Input  int64 `json:"inputTokens"`
	Output int64 `json:"outputTokens"`
	Total  int64 `json:"totalTokens"`
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
