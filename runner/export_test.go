package runner

// CompareAtMost changes how many comparisons a run makes at most.
func (r *Runner) CompareAtMost(n int) { r.maxComparisons = n }
