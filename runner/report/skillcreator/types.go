package skillcreator

// These types are the documents of the format, with the names of skill-creator. Numbers that nobody
// knows are left out.

// metadata is eval_metadata.json.
type metadata struct {
	EvalID     any      `json:"eval_id"` // a number or a text
	EvalName   string   `json:"eval_name"`
	Prompt     string   `json:"prompt"`
	Assertions []string `json:"assertions"`
}

// timing is timing.json.
type timing struct {
	TotalTokens     *int64   `json:"total_tokens,omitempty"`
	DurationMS      *int64   `json:"duration_ms,omitempty"`
	TotalSeconds    *float64 `json:"total_duration_seconds,omitempty"`
	ExecutorSeconds *float64 `json:"executor_duration_seconds,omitempty"`
	GraderSeconds   *float64 `json:"grader_duration_seconds,omitempty"`
}

// gradingTiming is the part of the timing in grading.json. It has no total: readers take the total
// and the tokens of timing.json only if the total is missing here.
type gradingTiming struct {
	ExecutorSeconds *float64 `json:"executor_duration_seconds,omitempty"`
	GraderSeconds   *float64 `json:"grader_duration_seconds,omitempty"`
}

// metrics is outputs/metrics.json.
type metrics struct {
	ToolCalls       map[string]int `json:"tool_calls"`
	TotalToolCalls  int            `json:"total_tool_calls"`
	TotalSteps      int            `json:"total_steps"`
	FilesCreated    []string       `json:"files_created"`
	Errors          int            `json:"errors_encountered"`
	OutputChars     int            `json:"output_chars"`
	TranscriptChars int            `json:"transcript_chars"`
}

// expectation is a statement with its mark.
type expectation struct {
	Text     string `json:"text"`
	Passed   bool   `json:"passed"`
	Evidence string `json:"evidence"`
}

type summary struct {
	Passed   int     `json:"passed"`
	Failed   int     `json:"failed"`
	Total    int     `json:"total"`
	PassRate float64 `json:"pass_rate"`
}

// grading is grading.json.
type grading struct {
	Expectations []expectation  `json:"expectations"`
	Summary      summary        `json:"summary"`
	Metrics      metrics        `json:"execution_metrics"`
	Timing       *gradingTiming `json:"timing,omitempty"`
}

// benchmark is benchmark.json.
type benchmark struct {
	Metadata   benchmarkHead  `json:"metadata"`
	Runs       []benchmarkRun `json:"runs"`
	RunSummary map[string]any `json:"run_summary"` // an armSummary for each arm, and the delta
	Notes      []string       `json:"notes"`
}

type benchmarkHead struct {
	SkillName     string `json:"skill_name"`
	ExecutorModel string `json:"executor_model,omitempty"`
	AnalyzerModel string `json:"analyzer_model,omitempty"`
	Timestamp     string `json:"timestamp,omitempty"`
	EvalsRun      []any  `json:"evals_run"`
	Runs          int    `json:"runs_per_configuration"`
}

type benchmarkRun struct {
	EvalID        any           `json:"eval_id"`
	EvalName      string        `json:"eval_name"`
	Configuration string        `json:"configuration"`
	RunNumber     int           `json:"run_number"`
	Result        result        `json:"result"`
	Expectations  []expectation `json:"expectations"`
	Notes         []string      `json:"notes"`
}

type result struct {
	PassRate  float64  `json:"pass_rate"`
	Passed    int      `json:"passed"`
	Failed    int      `json:"failed"`
	Total     int      `json:"total"`
	Seconds   *float64 `json:"time_seconds,omitempty"`
	Tokens    *int64   `json:"tokens,omitempty"`
	ToolCalls int      `json:"tool_calls"`
	Errors    int      `json:"errors"`
}

// armSummary describes the runs of an arm. A measure that no run has is left out.
type armSummary struct {
	PassRate *spread `json:"pass_rate,omitempty"`
	Seconds  *spread `json:"time_seconds,omitempty"`
	Tokens   *spread `json:"tokens,omitempty"`
}

type spread struct {
	Mean   float64 `json:"mean"`
	StdDev float64 `json:"stddev"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// delta is the first arm minus the second, as texts with a sign.
type delta struct {
	PassRate string `json:"pass_rate,omitempty"`
	Seconds  string `json:"time_seconds,omitempty"`
	Tokens   string `json:"tokens,omitempty"`
}
