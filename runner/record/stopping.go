package record

// Decided describes a task whose verdict was decided before all its trials were started, see
// [stats.Sequential].
type Decided struct {
	Verdict Verdict `json:"verdict"`
	// After is the number of trials that had ended when the verdict was decided, counted in the
	// order of their numbers. Of is the number of requested trials.
	After int `json:"after"`
	Of    int `json:"of"`
	// Saved is the number of trials that were not started.
	Saved int `json:"saved"`
	// Confidence is 1 when the verdict could no longer change.
	Confidence float64 `json:"confidence"`
}
