package runner

// CompareAtMost changes how many comparisons a run makes at most.
func (r *Runner) CompareAtMost(n int) { r.maxComparisons = n }

// NewRunID returns the id of a new run, and its time.
var NewRunID = newRunID
