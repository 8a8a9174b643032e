package record

// RateBasis says what a pass rate is a share or a mean of.
type RateBasis string

// BasisTasks is a mean over tasks, each of which weighs the same; no basis is the share
// of all that counted. The trials of tasks that could stop early are not pooled:
// tasks near their threshold have many, and would weigh more.
const BasisTasks RateBasis = "tasks"

// Rate is a pass rate with its 95 % interval. Both are nil when nothing was counted,
// and while something waits for a person's score: what failed an automatic grader is
// known at once, so a rate of what is known would be too low.
type Rate struct {
	PassRate *float64 `json:"passRate" doc:"Share of what counts that passed. Null when nothing counts, because all trials ended in error, were cancelled or were skipped: such trials say nothing of the agent. Null also while something waits for a person's score."`
	// PassRateInterval is Wilson's; of a task that could stop early [stats.Sample.Interval];
	// of a mean over tasks [stats.MeanInterval].
	PassRateInterval *Interval `json:"passRateInterval"`
	// PassRateBounds are the rates that a person can still make of it: if all that
	// waits failed, and if all of it passed. Nil when nothing waits.
	PassRateBounds *Interval `json:"passRateBounds,omitempty"`
	PassRateBasis  RateBasis `json:"passRateBasis,omitempty"`
}

// Unbiased holds estimates without the bias of stopping early, see
// [stats.Sample.Unbiased]. A single one varies more than the share of trials that
// passed does.
type Unbiased struct {
	PassRate float64 `json:"passRate"`
	// Score is nil when no trial has one.
	Score *float64 `json:"score"`
}
