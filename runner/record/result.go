package record

// Ledger is what the trials of the task cost.
func (res *Task) Ledger() *Ledger {
	if res.UsageByRole == nil && res.Usage != nil { // an older record
		return &Ledger{Agent: res.Usage}
	}
	return res.UsageByRole
}

// CouldStop reports whether trials of the task could be left out.
func (res *Task) CouldStop() bool { return res.Unbiased != nil }

// Counts says how many tasks or trials ended in each verdict. Total counts all,
// also those that have not ended yet.
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

// Add counts a verdict, but not in Total.
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

// Merge counts those of other counts, Total included.
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

// Done is how many have ended, also if a person has yet to give a score.
func (c Counts) Done() int { return c.Counted() + c.Errors + c.Cancelled + c.Skipped + c.NeedsReview }

// Counted is how many say something about the agent: those that passed, failed
// or took too long.
func (c Counts) Counted() int { return c.Passed + c.Failed + c.Timeouts }

// TrialCounts are the counts and pass rate of trials.
type TrialCounts struct {
	Counts
	Rate
}

// Task sums up the trials of one task.
type Task struct {
	Verdict Verdict `json:"verdict"`
	// Decided says why trials of the task were never started, its verdict being
	// known; nil when all were.
	Decided *Decided    `json:"decided,omitempty"`
	Trials  TrialCounts `json:"counts"`
	// Score describes the scores of the counted trials, of which a timeout's is 0; nil
	// when none counts, and
	// while trials wait for a person's score.
	Score *ScoreStats `json:"score"`
	// Flaky: some counted trials passed and some did not.
	Flaky bool `json:"flaky"`
	// PassK holds pass@k and pass^k for k up to the counted trials, at most 100. Where
	// the task could stop early, it ends with the least number of trials that could have
	// stopped it; while trials wait for a person's score, there is none.
	PassK []AtK `json:"passK,omitempty"`
	// Unbiased holds the task's contribution to means over tasks; nil unless the task
	// could stop early.
	Unbiased *Unbiased `json:"unbiased,omitempty"`
	// DurationMS describes how long the counted trials took, in milliseconds.
	DurationMS *Distribution `json:"durationMs"`
	// Tools are the means of the tool scores of its trials, those that wait for a person's
	// score included; nil when none has any.
	Tools *ToolScores `json:"tools,omitempty"`
	// Usage is what all attempts at all trials cost, agents and judges; UsageByRole
	// says who spent it.
	Usage       *Usage  `json:"usage,omitempty"`
	UsageByRole *Ledger `json:"usageByRole,omitempty"`
	// Cached is how many trials were taken over from earlier runs.
	Cached int `json:"cached,omitempty"`
	// Error says why the task is an error whatever its trials are.
	Error string `json:"error,omitempty"`
	// Reasons are what most often kept trials from passing, most frequent first.
	Reasons []Reason `json:"reasons,omitempty"`
}

// ScoreStats are statistics of scores. Those of a run describe the mean scores of its
// tasks; of tasks that could stop early, their estimates without bias.
type ScoreStats struct {
	Distribution
	// MeanInterval is the 95 % interval of the mean: for a task [stats.MeanInterval], for
	// several tasks the same of these very tasks.
	MeanInterval Interval `json:"meanInterval"`
}

// Reason is something that kept trials from passing.
type Reason struct {
	// Verdict of the trials it kept from passing.
	Verdict Verdict `json:"verdict"`
	// Grader is the name of the grader that was not satisfied; empty for an error.
	Grader  string `json:"grader,omitempty"`
	Message string `json:"message"`
	Trials  int    `json:"trials"`
}

// Summary sums up a run: its tasks, its trials and its metrics. Its counts, rates
// and scores are of the tasks of the suite alone; what came of baselines and
// trigger tests stands under those names, and Usage is that of all.
type Summary struct {
	Counts             // of tasks
	Rate               // of tasks
	Flaky  int         `json:"flaky"`
	Trials TrialCounts `json:"trials"`
	// TrialsSaved is how many trials were not started because the verdict on their
	// task was decided. They are among the skipped ones.
	TrialsSaved int `json:"trialsSaved,omitempty"`
	// Score describes the mean scores of the tasks; nil while trials wait for a person's
	// score.
	Score *ScoreStats `json:"score"`
	// PassK holds the means over tasks of pass@k and pass^k; nil while trials wait for a
	// person's score.
	PassK []AtK `json:"passK,omitempty"`
	// Tools are the means over tasks of their tool scores; nil when none has any.
	Tools    *ToolScores     `json:"tools,omitempty"`
	Metrics  []MetricResult  `json:"metrics,omitempty"`
	Baseline *BaselineResult `json:"baseline,omitempty"`
	Triggers *TriggerResult  `json:"triggers,omitempty"`
	Groups   []GroupResult   `json:"groups,omitempty"`
	// Tune ranks the cells of a param_tune or prompt_tune; nil of other kinds, and while
	// no cell has a score.
	Tune *TuneResult `json:"tune,omitempty"`
	// Judged is nil unless the suite is of the kind judge.
	Judged *JudgeResult `json:"judged,omitempty"`
	// Usage is what all attempts at all trials cost, agents and judges, and those of
	// baselines and trigger tests; UsageByRole says who spent it.
	Usage       *Usage  `json:"usage,omitempty"`
	UsageByRole *Ledger `json:"usageByRole,omitempty"`
	// TrialsCached is how many trials of all tasks were taken over from earlier
	// runs, UsageCached what of Usage was spent there and not by this run.
	TrialsCached int    `json:"trialsCached,omitempty"`
	UsageCached  *Usage `json:"usageCached,omitempty"`
	DurationMS   int64  `json:"durationMs"`
	// Missed names the metrics under their threshold.
	Missed []string `json:"missed,omitempty"`
	// Benchmark is what the trials of a benchmark measured that has no cells; nil of others.
	Benchmark *BenchmarkResult `json:"benchmark,omitempty"`
	// Calibrations tell how far graders agree with the persons who scored the same trials.
	Calibrations []CalibrationResult `json:"calibrations,omitempty"`
}

// Waiting is how many trials wait for a person's score, those of the baseline
// included.
func (s *Summary) Waiting() int {
	n := s.Trials.NeedsReview
	if s.Baseline != nil {
		n += s.Baseline.Trials.NeedsReview
	}
	return n
}

// Unmeasured names the metrics with a threshold that could not be measured.
func (s *Summary) Unmeasured() []string {
	var names []string
	for _, m := range s.Metrics {
		if m.Value == nil && m.Threshold > 0 {
			names = append(names, m.Name)
		}
	}
	return names
}

// MetricResult is a metric and what it must reach.
type MetricResult struct {
	MetricRef
	// Value is nil when there was nothing to measure; Note says why.
	Value  *float64 `json:"value"`
	Passed *bool    `json:"passed"`
	Note   string   `json:"note,omitempty"`
}

// CalibrationResult holds a grader, mostly a judge, against persons' scores.
type CalibrationResult struct {
	// Grader is the name of the grader that is calibrated.
	Grader string `json:"grader"`
	// Pending is how many trials wait for a person's score.
	Pending int `json:"pending,omitempty"`
	// Agreement is over the trials that both scored; differences are the
	// grader's score less the person's.
	Agreement
}

// GroupResult sums up the trials of the tasks in one group of config.group_by or,
// where the suite names none, in one cell of the matrix.
type GroupResult struct {
	Group string `json:"group"`
	TrialCounts
	// CellResult is nil when groups are no cells.
	*CellResult
}

// CellResult tells more of a cell of the matrix. But for the last two, numbers are
// those of the tasks of the suite.
type CellResult struct {
	Cell *Cell `json:"cell"`
	// Tasks counts verdicts; Score describes the mean scores of the tasks.
	Tasks Counts      `json:"tasks"`
	Score *ScoreStats `json:"score"`
	// Tools are the means over tasks of their tool scores; nil when none has any.
	Tools *ToolScores `json:"tools,omitempty"`
	// Benchmark is what trials of a suite of the kind benchmark measured; nil of others.
	Benchmark *BenchmarkResult `json:"benchmark,omitempty"`
	// Usage is what they cost; nil when nothing is known of that.
	Usage *Usage `json:"usage,omitempty"`
	// MeanDurationMS is how long a counted trial took; nil when none was counted.
	MeanDurationMS *float64 `json:"meanDurationMs"`
	// Baseline and Triggers are those of the cell, without their lists.
	Baseline *BaselineResult `json:"baseline,omitempty"`
	Triggers *TriggerResult  `json:"triggers,omitempty"`
}

// Judge adds a metric, and whether it reached its threshold.
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

// Finished reports whether all that was to be learned of a task was: nothing of it
// was cut short, or fell to an error. nil is not.
func (res *Task) Finished() bool {
	if res == nil || res.Error != "" || res.Trials.Errors+res.Trials.Cancelled > 0 {
		return false
	}
	return res.Trials.Skipped == 0 || res.Decided != nil
}
