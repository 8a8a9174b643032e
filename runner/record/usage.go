package record

import (
	"math"
)

// Speed is the speed of a model in a trial.
type Speed struct {
	// FirstTokenMS is the time from the first request to the first part of the answer, in
	// milliseconds.
	FirstTokenMS float64 `json:"firstTokenMs"`
	// TokensPerSecond is the rate at which the model wrote afterwards, over all requests: the
	// number of tokens after the first one of each answer, divided by the time after it. It is 0
	// when the provider counts no tokens, and for answers of one token.
	TokensPerSecond float64 `json:"tokensPerSecond,omitempty"`
	// Requests is the number of answered requests. Retries is the number of failed ones before.
	Requests int `json:"requests"`
	Retries  int `json:"retries,omitempty"`
}

// Usage is the cost of a trial. No count is negative; unknown counts are zero.
type Usage struct {
	InputTokens  int64   `json:"inputTokens"`
	OutputTokens int64   `json:"outputTokens"`
	TotalTokens  int64   `json:"totalTokens,omitempty"` // only set when the provider counts it separately
	CostUSD      float64 `json:"costUsd,omitempty"`
}

// Total returns the total number of tokens.
func (u Usage) Total() int64 {
	return max(u.TotalTokens, addCounts(u.InputTokens, u.OutputTokens))
}

// Add returns the sum of two usages. Sums saturate at the largest number, because agents can
// report absurd values and infinity could not be recorded.
func (u Usage) Add(o Usage) Usage {
	if u.TotalTokens > 0 || o.TotalTokens > 0 { // keeps the total of a sum equal to the sum of the totals
		u.TotalTokens = addCounts(u.Total(), o.Total())
	}
	u.InputTokens = addCounts(u.InputTokens, o.InputTokens)
	u.OutputTokens = addCounts(u.OutputTokens, o.OutputTokens)
	u.CostUSD = min(u.CostUSD+o.CostUSD, math.MaxFloat64)
	return u
}

// addCounts adds two non-negative numbers.
func addCounts(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
