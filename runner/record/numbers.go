package record

// Agreement measures how far a rater agrees with a reference rater.
type Agreement struct {
	N int `json:"n"`
	// MeanDifference is the mean of the rater's score minus the reference's. Above 0, the rater
	// is more lenient.
	MeanDifference float64 `json:"meanDifference"`
	// MeanAbsoluteDifference is the mean distance between the scores.
	MeanAbsoluteDifference float64 `json:"meanAbsoluteDifference"`
	// Agreed is the share of items that both pass or both do not.
	Agreed float64 `json:"agreed"`
	// Kappa is Cohen's kappa: the share of agreement beyond chance. It is at most 1, and below 0
	// where chance would agree more often. It is nil where chance alone gives full agreement,
	// because both raters gave the same single verdict throughout.
	Kappa *float64 `json:"kappa"`
	// KappaInterval is the 95 % interval of Kappa. It is nil where Kappa is nil, and for fewer
	// than 10 items.
	KappaInterval *Interval `json:"kappaInterval,omitempty"`
}

// AtK holds pass@k and pass^k for one k.
type AtK struct {
	K int `json:"k"`
	// PassAtK is the probability that at least one of K trials passes.
	PassAtK float64 `json:"passAtK"`
	// PassHatK is the probability that all of K trials pass.
	PassHatK float64 `json:"passHatK"`
}

// Interval is a range that contains the true value with some confidence. Low is never above
// High.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// ExcludesZero reports whether all values of the interval have the same sign. It is false for
// nil.
func (i *Interval) ExcludesZero() bool { return i != nil && (i.Low > 0 || i.High < 0) }

// Including returns the interval, extended so that it contains x.
func (i Interval) Including(x float64) Interval {
	return Interval{Low: min(i.Low, x), High: max(i.High, x)}
}

// Distribution describes a set of scores. Without scores, every field is zero. With one score,
// every field except StdDev is that score.
type Distribution struct {
	N      int     `json:"n"`
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// StdDev is the sample standard deviation (divisor n-1); 0 for fewer than two scores.
	StdDev float64 `json:"stdDev"`
}

// Spread describes values of which a few can be much larger than the others, such as times. The
// median is the 50th percentile. Percentiles lie between two neighboring values by linear
// interpolation.
type Spread struct {
	Distribution
	P90 float64 `json:"p90"`
	P95 float64 `json:"p95"`
}

// ToolScores rate the choice and use of tools, each from 0 to 1, in one trial or as means over
// several. They ignore calls beyond the expected ones.
type ToolScores struct {
	// Selection is the share of expected calls that were made.
	Selection float64 `json:"selection"`
	// Params is the share of listed arguments that are right; nil where no expected call lists
	// arguments.
	Params *float64 `json:"params"`
	// Overall is the mean of Selection and Params, or Selection where Params is nil. As a mean
	// over trials, it is the mean of their overall scores.
	Overall float64 `json:"overall"`
}

// TrialTools are the tool scores of a trial.
type TrialTools struct {
	ToolScores
	// Call is the call that best matches an expected one: its index among the tool calls of the
	// transcript, from 0. It is nil when no call matches.
	Call *int `json:"call,omitempty"`
}

// Measure describes a quantity that was measured in trials.
type Measure struct {
	Spread
	// MeanInterval is the 95 % interval of the mean, see [stats.StudentInterval]; nil for fewer
	// than two values.
	MeanInterval *Interval `json:"meanInterval"`
}

// BenchmarkResult holds the measurements of a model, over all answered trials of all tasks. A
// measure is nil when no trial has a value.
type BenchmarkResult struct {
	// Trials is the number of answered trials.
	Trials int `json:"trials"`
	// FirstTokenMS and TokensPerSecond are those of [Speed]. TotalMS is the time from the prompt
	// to the end of the answer.
	FirstTokenMS    *Measure `json:"firstTokenMs"`
	TotalMS         *Measure `json:"totalMs"`
	TokensPerSecond *Measure `json:"tokensPerSecond"`
	InputTokens     *Measure `json:"inputTokens"`
	OutputTokens    *Measure `json:"outputTokens"`
	// CostUSD is the cost of the model per trial.
	CostUSD *Measure `json:"costUsd"`
	// Note lists the tasks with trials that were not answered, which the measures leave out. It is
	// empty if all were answered.
	Note string `json:"note,omitempty"`
}
