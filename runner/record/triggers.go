package record

// TriggerResult says how well the agent knew when to use the skill under test.
// Each prompt weighs 1, or 0.5 where its confidence is medium, shared by those of
// its trials that gave an answer; errors and timeouts gave none. Quotients are
// nil where they are not defined.
type TriggerResult struct {
	Skill string `json:"skill,omitempty"`
	// Prompts is how many the suite has, run or not.
	Prompts int `json:"prompts"`
	// Measured: at least one prompt was answered. Note says why none was.
	Measured bool   `json:"measured"`
	Note     string `json:"note,omitempty"`
	// Precision is the share of uses of the skill that were right, Recall that
	// of prompts for it which led to its use, F1 their harmonic mean.
	Precision *float64 `json:"precision"`
	Recall    *float64 `json:"recall"`
	F1        *float64 `json:"f1"`
	// Accuracy is the share of right answers, with its Wilson 95 % interval over
	// as many prompts as the weights are worth.
	Accuracy         *float64  `json:"accuracy"`
	AccuracyInterval *Interval `json:"accuracyInterval"`
	Confusion        Confusion `json:"confusion"`
	// Trials counts those of all prompts: passed are right answers, failed wrong ones.
	Trials Counts `json:"trials"`
	// Errors counts the trials in error, Timeouts those whose time was up before
	// the agent had used the skill.
	Errors   int             `json:"errors"`
	Timeouts int             `json:"timeouts"`
	Results  []TriggerPrompt `json:"results,omitempty"`
}

// Confusion is the confusion matrix of trigger tests, in weights of prompts.
type Confusion struct {
	TruePositives  float64 `json:"truePositives"`
	FalsePositives float64 `json:"falsePositives"`
	TrueNegatives  float64 `json:"trueNegatives"`
	FalseNegatives float64 `json:"falseNegatives"`
}

// TriggerPrompt is what became of a prompt of the trigger tests.
type TriggerPrompt struct {
	ID string `json:"id"`
	TriggerRef
	// Verdict is passed when every answer was right.
	Verdict Verdict `json:"verdict"`
	// Triggered is how many of the Answered trials used the skill.
	Triggered int `json:"triggered"`
	Answered  int `json:"answered"`
	Errors    int `json:"errors,omitempty"`
	Timeouts  int `json:"timeouts,omitempty"`
}
