package record

// Decided reports a task whose verdict was decided before all its trials were
// started, see [stats.Sequential].
type Decided struct {
	Verdict Verdict `json:"verdict"`
	// After is how many trials of the Of asked for had ended, counted in the order
	// of their numbers, when the verdict was decided.
	After int `json:"after"`
	Of    int `json:"of"`
	// Saved is how many trials were not started.
	Saved int `json:"saved"`
	// Confidence is 1 when the verdict could not change any more.
	Confidence float64 `json:"confidence"`
}
