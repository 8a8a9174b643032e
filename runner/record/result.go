package record

// Ledger returns the cost of the task's trials.
func (res *Task) Ledger() *Ledger {
	if res.UsageByRole == nil && res.Usage != nil { // an older record
		return &Ledger{Agent: res.Usage}
	}
	return res.UsageByRole
}

// CouldStop reports whether trials of the task could be skipped.
func (res *Task) CouldStop() bool { return res.Unbiased != nil }

// Counts counts tasks or trials by verdict. Total counts all, including those that have not
// ended.
type Counts struct {
	Total     int `json:"total"`
	Passed    int `json:"passed"`
	Failed    int `json:"failed"`
	Errors    int `json:"errors"`
	Timeouts  int `json:"timeouts"`
	Cancelled int `json:"cancelled"`
	Skipped   int `json:"skipped"`
	// NeedsReview counts those that wait for a person's score.
	NeedsReview int `json:"needsReview,omitempty"`
}

// Add counts a verdict. It does not change Total.
func (c *Counts) Add(v Verdict) { c.count(v, 1) }

// Remove undoes Add.
func (c *Counts) Remove(v Verdict) { c.count(v, -1) }

func (c *Counts) count(v Verdict, n int) {
	switch v {
	case Passed:
		c.Passed += n
	case Failed:
		c.Failed += n
	case Errored:
		c.Errors += n
	case TimedOut:
		c.Timeouts += n
	case Cancelled:
		c.Cancelled += n
	case Skipped:
		c.Skipped += n
	case NeedsReview:
		c.NeedsReview += n
	}
}

// Merge adds the counts of o, including Total.
func (c *Counts) Merge(o Counts) {
	c.Total += o.Total
	c.Passed += o.Passed
	c.Failed += o.Failed
	c.Errors += o.Errors
	c.Timeouts += o.Timeouts
	c.Cancelled += o.Cancelled
	c.Skipped += o.Skipped
	c.NeedsReview += o.NeedsReview
}

// Done returns the number that have ended, including those that wait for a person's score.
func (c Counts) Done() int { return c.Counted() + c.Errors + c.Cancelled + c.Skipped + c.NeedsReview }

// Counted returns the number that measure the agent: those that passed, failed or timed out.
func (c Counts) Counted() int { return c.Passed + c.Failed + c.Timeouts }

// TrialCounts holds the counts and the pass rate of trials.
type TrialCounts struct {
	Counts
	Rate
}

// Task summarizes the trials of one task.
type Task struct {
	Verdict Verdict `json:"verdict"`
	// Decided explains why trials of the task were never started because its verdict was known.
	// It is nil when all were started.
	Decided *Decided `json:"decided,omitempty"`
	// Saved is the number of trials that were never started because the question of the run did
	// not need them. They are skipped trials, without an effect on the verdict.
	Saved  int         `json:"saved,omitempty"`
	Trials TrialCounts `json:"counts"`
	// Score describes the scores of the counted trials; the score of a timeout is 0. It is nil
	// when no trial counts, and while trials wait for a person's score.
	Score *ScoreStats `json:"score"`
	// Flaky reports whether some counted trials passed and some did not.
	Flaky bool `json:"flaky"`
	// PassK holds pass@k and pass^k for k up to the number of counted trials, at most 100. Where
	// the task could stop early, k ends at the lowest number of trials that could have stopped
	// it. PassK is empty while trials wait for a person's score.
	PassK []AtK `json:"passK,omitempty"`
	// Unbiased holds the task's contribution to means over tasks. It is nil unless the task
	// could stop early.
	Unbiased *Unbiased `json:"unbiased,omitempty"`
	// DurationMS describes the durations of the counted trials, in milliseconds.
	DurationMS *Spread `json:"durationMs"`
	// Tools holds the means of the tool scores of the trials, including those that wait for a
	// person's score. It is nil when no trial has tool scores.
	Tools *ToolScores `json:"tools,omitempty"`
	// Usage is the cost of all attempts at all trials, agents and judges. UsageByRole splits it
	// by spender.
	Usage       *Usage  `json:"usage,omitempty"`
	UsageByRole *Ledger `json:"usageByRole,omitempty"`
	// Cached is the number of trials that were reused from earlier runs.
	Cached int `json:"cached,omitempty"`
	// Suspicious is the number of trials that passed with suspicious moves. They count as passed.
	Suspicious int `json:"suspicious,omitempty"`
	// Suspicions lists moves of these trials, at most [MostSuspicions], in the order of the trials.
	Suspicions []TrialSuspicion `json:"suspicions,omitempty"`
	// SelfReported is the number of trials whose pass depends on tool calls that only the agent says it
	// made. They count as passed.
	SelfReported int `json:"selfReported,omitempty"`
	// Error is the reason why the task ends in error, whatever its trials are.
	Error string `json:"error,omitempty"`
	// Reasons lists the most frequent reasons why trials did not pass, most frequent first.
	Reasons []Reason `json:"reasons,omitempty"`
}

// ScoreStats are statistics of scores. Those of a run describe the mean scores of its tasks. For
// tasks that could stop early, they use the unbiased estimates.
type ScoreStats struct {
	Distribution
	// MeanInterval is the 95 % interval of the mean, see [stats.MeanOver]. Over several tasks, it
	// applies to these tasks only.
	MeanInterval Interval `json:"meanInterval"`
}

// Reason is a cause that kept trials from passing.
type Reason struct {
	// Verdict is the verdict of the affected trials.
	Verdict Verdict `json:"verdict"`
	// Grader is the name of the grader that failed the trials; empty for an error.
	Grader  string `json:"grader,omitempty"`
	Message string `json:"message"`
	Trials  int    `json:"trials"`
}

// Summary summarizes a run: its tasks, its trials and its metrics. Its counts, rates and scores
// cover only the tasks of the suite. Baseline and Triggers hold the results of baselines and
// trigger tests. Usage covers all of them.
type Summary struct {
	Counts             // of tasks
	Rate               // of tasks
	Flaky  int         `json:"flaky"`
	Trials TrialCounts `json:"trials"`
	// TrialsSaved is the number of trials that were not started because the verdict of their
	// task was decided, or because the question of the run did not need them. They are included
	// in the skipped trials.
	TrialsSaved int `json:"trialsSaved,omitempty"`
	// Suspicious is the number of trials of the suite's tasks that passed with suspicious moves. They
	// count as passed.
	Suspicious int `json:"suspicious,omitempty"`
	// SelfReported is the number of such trials whose pass depends on tool calls that only the agent says
	// it made. They count as passed.
	SelfReported int `json:"selfReported,omitempty"`
	// Tiers counts the trials of all tasks by [Trial.Tier], in the order of their names. It is empty
	// unless workers of a fleet chose the tiers.
	Tiers []TierTrials `json:"tiers,omitempty"`
	// Score describes the mean scores of the tasks. It is nil while trials wait for a person's
	// score.
	Score *ScoreStats `json:"score"`
	// Shrunken holds the shrunken pass rates of the tasks. It is nil where [stats.Shrink]
	// shows none, and in a matrix.
	Shrunken *ShrunkenRates `json:"shrunken,omitempty"`
	// PassK holds the means over tasks of pass@k and pass^k. It is nil while trials wait for a
	// person's score.
	PassK []AtK `json:"passK,omitempty"`
	// Tools holds the means over tasks of their tool scores; nil when no task has any.
	Tools    *ToolScores     `json:"tools,omitempty"`
	Metrics  []MetricResult  `json:"metrics,omitempty"`
	Baseline *BaselineResult `json:"baseline,omitempty"`
	Triggers *TriggerResult  `json:"triggers,omitempty"`
	// ShouldTrigger is nil unless tasks have an expected.should_trigger that waza did not check.
	ShouldTrigger *UnmeasuredTasks `json:"shouldTrigger,omitempty"`
	// Routing is nil unless tasks state which clients take their messages.
	Routing *RoutingResult `json:"routing,omitempty"`
	Groups  []GroupResult  `json:"groups,omitempty"`
	// Common lists the tasks that comparisons of cells leave out, and those that the overall
	// score of a suite of kind judge leaves out. It is nil when no task is left out, and for other
	// runs.
	Common *CommonTasks `json:"common,omitempty"`
	// Tune ranks the cells of a param_tune or prompt_tune. It is nil for other kinds, and while
	// no cell has a score.
	Tune *TuneResult `json:"tune,omitempty"`
	// Judged is nil unless the suite is of kind judge.
	Judged *JudgeResult `json:"judged,omitempty"`
	// Decision answers the question of the run; nil for other runs.
	Decision *Decision `json:"decision,omitempty"`
	// Usage is the cost of all attempts at all trials, agents and judges, including baselines
	// and trigger tests. UsageByRole splits it by spender.
	Usage       *Usage  `json:"usage,omitempty"`
	UsageByRole *Ledger `json:"usageByRole,omitempty"`
	// TrialsCached is the number of trials of all tasks that were reused from earlier runs.
	// UsageCached is the part of Usage that those runs spent, not this one.
	TrialsCached int    `json:"trialsCached,omitempty"`
	UsageCached  *Usage `json:"usageCached,omitempty"`
	DurationMS   int64  `json:"durationMs"`
	// Missed names the metrics below their threshold.
	Missed []string `json:"missed,omitempty"`
	// Benchmark holds the measurements of a benchmark without cells; nil for other suites.
	Benchmark *BenchmarkResult `json:"benchmark,omitempty"`
	// Calibrations measure the agreement of graders with the people who scored the same trials.
	Calibrations []CalibrationResult `json:"calibrations,omitempty"`
	// JudgePositions lists the judges who compare outputs and evidently prefer a place.
	JudgePositions []JudgePosition `json:"judgePositions,omitempty"`
	// Noise lists the conditions with which failures or errors evidently go.
	Noise []NoiseResult `json:"noise,omitempty"`
}

// Waiting returns the number of trials that wait for a person's score, including those of the
// baseline.
func (s *Summary) Waiting() int {
	n := s.Trials.NeedsReview
	if s.Baseline != nil {
		n += s.Baseline.Trials.NeedsReview
	}
	return n
}

// Unmeasured returns the names of metrics with a threshold that could not be measured.
func (s *Summary) Unmeasured() []string {
	var names []string
	for _, m := range s.Metrics {
		if m.Value == nil && m.Threshold > 0 {
			names = append(names, m.Name)
		}
	}
	return names
}

// MetricResult is the value of a metric and its threshold.
type MetricResult struct {
	MetricRef
	// Value is nil when there was nothing to measure; Note gives the reason.
	Value  *float64 `json:"value"`
	Passed *bool    `json:"passed"`
	Note   string   `json:"note,omitempty"`
}

// CalibrationResult compares a grader, usually a judge, with people's scores.
type CalibrationResult struct {
	// Grader is the name of the calibrated grader.
	Grader string `json:"grader"`
	// Judges names the models or agents that gave the grader's scores of these trials, in the order
	// of their names. It is empty for a grader that asks none, and in older records.
	Judges []string `json:"judges,omitempty"`
	// Pending is the number of trials that wait for a person's score.
	Pending int `json:"pending,omitempty"`
	// Agreement covers the trials that both scored. Differences are the grader's score minus the
	// person's.
	Agreement
	// Corrected is nil unless waza drew trials at random for people.
	Corrected *CorrectedRate `json:"corrected,omitempty"`
}

// CorrectedRate is the pass rate of all trials that a grader scored as people would see it. It is
// estimated from people's scores of trials that were drawn at random, see [stats.CorrectedMean].
type CorrectedRate struct {
	// Trials is the number of trials that the grader had scored when trials were drawn. Drawn is
	// the number of drawn trials. Labels is the number of people's scores that the estimates use:
	// those of drawn trials of the same verdict up to the first without a score. Waiting is the
	// number of later ones, which are no random sample until people have scored the earlier trials.
	Trials  int `json:"trials"`
	Drawn   int `json:"drawn"`
	Labels  int `json:"labels"`
	Waiting int `json:"waiting,omitempty"`
	// Judged is the grader's present pass rate, JudgedInterval its 95 % interval, and JudgedScore
	// the mean of its scores. JudgedTrials is the number of trials that it has scored; nil if that
	// is Trials.
	JudgedTrials   *int     `json:"judgedTrials,omitempty"`
	Judged         float64  `json:"judged"`
	JudgedInterval Interval `json:"judgedInterval"`
	JudgedScore    float64  `json:"judgedScore"`
	// PassRate is the corrected pass rate with its 95 % interval, and Score the corrected mean
	// score. They are about all trials that the agent could make of these tasks. They are nil
	// until people have scored a trial that the grader passed and one that it failed, where there
	// are such trials.
	PassRate         *float64  `json:"passRate"`
	PassRateInterval *Interval `json:"passRateInterval"`
	Score            *float64  `json:"score"`
	ScoreInterval    *Interval `json:"scoreInterval"`
}

// GroupResult summarizes the trials of the tasks in one group of config.group_by or, if the
// suite sets none, in one cell of the matrix.
type GroupResult struct {
	Group string `json:"group"`
	TrialCounts
	// CellResult is nil when groups are not cells.
	*CellResult
}

// CellResult holds more results of a cell of the matrix. All numbers except baseline and
// triggers cover only the tasks of the suite.
type CellResult struct {
	Cell *Cell `json:"cell"`
	// Tasks counts verdicts. Score describes the mean scores of the tasks.
	Tasks Counts      `json:"tasks"`
	Score *ScoreStats `json:"score"`
	// Tools holds the means over tasks of their tool scores; nil when no task has any.
	Tools *ToolScores `json:"tools,omitempty"`
	// Benchmark holds the measurements of a suite of kind benchmark; nil for other kinds.
	Benchmark *BenchmarkResult `json:"benchmark,omitempty"`
	// Usage is the cost of the trials; nil when it is unknown.
	Usage *Usage `json:"usage,omitempty"`
	// DurationMS describes the durations of the counted trials of all tasks, in milliseconds; nil
	// when none was counted. Records of earlier versions have none.
	DurationMS *Spread `json:"durationMs"`
	// Baseline and Triggers are those of the cell, without their lists.
	Baseline *BaselineResult `json:"baseline,omitempty"`
	Triggers *TriggerResult  `json:"triggers,omitempty"`
	// Routing is the routing result of the cell, without confusion and misroutes.
	Routing *RoutingResult `json:"routing,omitempty"`
}

// Judge adds a metric and records whether it reached its threshold.
func (s *Summary) Judge(m MetricResult) {
	if m.Value != nil {
		ok := *m.Value >= m.Threshold-1e-9
		m.Passed = &ok
		if !ok {
			s.Missed = append(s.Missed, m.Name)
		}
	}
	s.Metrics = append(s.Metrics, m)
}

// Finished reports whether the task is complete: nothing of it was interrupted or ended in
// error. A nil task is not finished.
func (res *Task) Finished() bool {
	if res == nil || res.Error != "" || res.Trials.Errors+res.Trials.Cancelled > 0 {
		return false
	}
	return res.Trials.Skipped == 0 || res.Decided != nil || res.Saved > 0
}

// SavedTrials returns the number of skipped trials that nobody needs.
func (res *Task) SavedTrials() int {
	if res.Decided != nil {
		return res.Decided.Saved
	}
	return res.Saved
}
