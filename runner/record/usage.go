package record

import (
	"math"
)

// Speed says how fast a model was in a trial.
type Speed struct {
	// FirstTokenMS is the time from the first request until something of the
	// answer came, in milliseconds.
	FirstTokenMS float64 `json:"firstTokenMs"`
	// TokensPerSecond is how fast the model wrote from then on, over all
	// requests; 0 when the provider counts no tokens.
	TokensPerSecond float64 `json:"tokensPerSecond,omitempty"`
	// Requests were answered, Retries were sent in vain before.
	Requests int `json:"requests"`
	Retries  int `json:"retries,omitempty"`
}

// Usage counts what a trial cost. No count is negative; those that are not known
// are zero.
type Usage struct {
	InputTokens  int64   `json:"inputTokens"`
	OutputTokens int64   `json:"outputTokens"`
	TotalTokens  int64   `json:"totalTokens,omitempty"` // when the provider counts it apart
	CostUSD      float64 `json:"costUsd,omitempty"`
}

// Total is the number of tokens in all.
func (u Usage) Total() int64 {
	return max(u.TotalTokens, addCounts(u.InputTokens, u.OutputTokens))
}

// Add sums two usages. What an agent reports may be absurd, so a sum stays at the
// largest number there is: infinity could not be recorded.
func (u Usage) Add(o Usage) Usage {
	if u.TotalTokens > 0 || o.TotalTokens > 0 { // so that the total of a sum is the sum of the totals
		u.TotalTokens = addCounts(u.Total(), o.Total())
	}
	u.InputTokens = addCounts(u.InputTokens, o.InputTokens)
	u.OutputTokens = addCounts(u.OutputTokens, o.OutputTokens)
	u.CostUSD = min(u.CostUSD+o.CostUSD, math.MaxFloat64)
	return u
}

// addCounts adds numbers that are not negative.
func addCounts(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
