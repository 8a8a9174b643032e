package atif

//
// These types are the documents of the format, with all required keys.

type trajectory struct {
	SchemaVersion string         `json:"schema_version"`
	SessionID     string         `json:"session_id"`
	Agent         agent          `json:"agent"`
	Steps         []*step        `json:"steps"`
	Notes         string         `json:"notes,omitempty"`
	FinalMetrics  *finalMetrics  `json:"final_metrics,omitempty"`
	Extra         map[string]any `json:"extra,omitempty"`
}

type agent struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	ModelName string `json:"model_name,omitempty"`
}

// The sources of steps.
const (
	bySystem = "system"
	byUser   = "user"
	byAgent  = "agent"
)

type step struct {
	ID        int          `json:"step_id"` // from 1, without gaps
	Timestamp string       `json:"timestamp,omitempty"`
	Source    string       `json:"source"`
	Message   string       `json:"message"`
	Reasoning string       `json:"reasoning_content,omitempty"`
	ToolCalls []toolCall   `json:"tool_calls,omitempty"`
	Observed  *observation `json:"observation,omitempty"`
}

type toolCall struct {
	ID        string         `json:"tool_call_id"`
	Name      string         `json:"function_name"`
	Arguments map[string]any `json:"arguments"`
}

type observation struct {
	Results []observed `json:"results"`
}

type observed struct {
	CallID  string `json:"source_call_id"`
	Content string `json:"content"`
}

type finalMetrics struct {
	PromptTokens     *int64   `json:"total_prompt_tokens,omitempty"`
	CompletionTokens *int64   `json:"total_completion_tokens,omitempty"`
	CostUSD          *float64 `json:"total_cost_usd,omitempty"`
	TotalSteps       int      `json:"total_steps"`
}
