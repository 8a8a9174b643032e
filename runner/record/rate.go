package record

// RateBasis states how a pass rate is computed.
type RateBasis string

// BasisTasks marks a mean over tasks with equal weights. An empty basis marks the share of all
// counted trials. Trials of tasks that could stop early are not pooled, because tasks near their
// threshold have more trials and would weigh more.
const BasisTasks RateBasis = "tasks"

// Rate is a pass rate with its 95 % interval. Both are nil when nothing was counted. They are
// also nil while something waits for a person's score: failures of automatic graders are known
// at once, so a rate without the waiting items would be too low.
type Rate struct {
	PassRate *float64 `json:"passRate" doc:"Share of what counts that passed. Null when nothing counts, because all trials ended in error, were cancelled or were skipped: such trials say nothing of the agent. Null also while something waits for a person's score."`
	// PassRateInterval is the exact interval, see [stats.ClopperPearson]. For a task that could
	// stop early it is [stats.Sample.Interval], for a mean over tasks [stats.MeanOver].
	PassRateInterval *Interval `json:"passRateInterval"`
	// PassRateBounds are the lowest and the highest rate that are still possible: if all waiting
	// items fail, and if all pass. It is nil when nothing waits.
	PassRateBounds *Interval `json:"passRateBounds,omitempty"`
	PassRateBasis  RateBasis `json:"passRateBasis,omitempty"`
}

// Unbiased holds estimates without the bias of stopping early, see [stats.Sample.Unbiased]. A
// single estimate varies more than the share of passed trials.
type Unbiased struct {
	PassRate float64 `json:"passRate"`
	// Score is nil when no trial has one.
	Score *float64 `json:"score"`
}
