package record

// TriggerResult measures how well the agent decided when to use the skill under test. Each
// prompt weighs 1, or 0.5 if its confidence is medium. Its answered trials and its timeouts share
// the weight; errors have none. A timeout is a wrong answer. Undefined quotients are nil.
type TriggerResult struct {
	Skill string `json:"skill,omitempty"`
	// Prompts is the number of prompts in the suite, including those that did not run.
	Prompts int `json:"prompts"`
	// Measured reports whether at least one prompt was answered or timed out. If not, Note gives
	// the reason.
	Measured bool   `json:"measured"`
	Note     string `json:"note,omitempty"`
	// Precision is the share of right uses among all uses of the skill. Recall is the share of
	// the skill's prompts that led to its use. F1 is their harmonic mean.
	Precision *float64 `json:"precision"`
	Recall    *float64 `json:"recall"`
	F1        *float64 `json:"f1"`
	// Accuracy is the share of right answers, with its 95 % interval, see [stats.MeanOver].
	Accuracy         *float64  `json:"accuracy"`
	AccuracyInterval *Interval `json:"accuracyInterval"`
	Confusion        Confusion `json:"confusion"`
	// Trials counts the trials of all prompts. Right answers count as passed, wrong ones as
	// failed.
	Trials Counts `json:"trials"`
	// Errors counts the trials in error. Timeouts counts the trials that timed out before the
	// agent used the skill.
	Errors   int `json:"errors"`
	Timeouts int `json:"timeouts"`
	// EndedEarly counts the trials that waza ended because their verdict was decided, see [Trial]. Their usage
	// is that until then, as far as the agent had reported it.
	EndedEarly int             `json:"endedEarly,omitempty"`
	Results    []TriggerPrompt `json:"results,omitempty"`
}

// Confusion is the confusion matrix of trigger tests, in weights of prompts.
type Confusion struct {
	TruePositives  float64 `json:"truePositives"`
	FalsePositives float64 `json:"falsePositives"`
	TrueNegatives  float64 `json:"trueNegatives"`
	FalseNegatives float64 `json:"falseNegatives"`
	// Unanswered is the weight of trials that should not use the skill and timed out before they
	// used it. They lower only the accuracy.
	Unanswered float64 `json:"unanswered,omitempty"`
}

// TriggerPrompt is the result of a prompt of the trigger tests.
type TriggerPrompt struct {
	ID string `json:"id"`
	TriggerRef
	// Verdict is passed when every answer was right.
	Verdict Verdict `json:"verdict"`
	// Triggered is the number of the Answered trials that used the skill.
	Triggered int `json:"triggered"`
	Answered  int `json:"answered"`
	Errors    int `json:"errors,omitempty"`
	Timeouts  int `json:"timeouts,omitempty"`
}
