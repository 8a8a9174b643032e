package record

// Agreement says how far a rater agrees with the one it is held against.
type Agreement struct {
	N int `json:"n"`
	// MeanDifference is the mean of the rater's score less the reference's: above
	// 0 the rater is the milder one.
	MeanDifference float64 `json:"meanDifference"`
	// MeanAbsoluteDifference is how far the scores are apart, on average.
	MeanAbsoluteDifference float64 `json:"meanAbsoluteDifference"`
	// Agreed is the share of things that both let pass or both did not.
	Agreed float64 `json:"agreed"`
	// Kappa is Cohen's: the share of agreement beyond what chance alone gives,
	// 1 at most and below 0 where chance would do better. It is nil where chance
	// alone gives full agreement, as both gave one and the same verdict throughout.
	Kappa *float64 `json:"kappa"`
	// KappaInterval is the 95 % interval of Kappa; nil where Kappa is, and for fewer
	// than 10 things.
	KappaInterval *Interval `json:"kappaInterval,omitempty"`
}

// AtK holds both measures for one k.
type AtK struct {
	K int `json:"k"`
	// PassAtK is the chance that at least one of K trials passes.
	PassAtK float64 `json:"passAtK"`
	// PassHatK is the chance that all of K trials pass.
	PassHatK float64 `json:"passHatK"`
}

// Interval is a range that holds the true value with some confidence.
// Low is never above High.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Distribution describes a set of scores. Without scores every field is zero; with
// one, all but StdDev are that score.
type Distribution struct {
	N      int     `json:"n"`
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// StdDev is the sample standard deviation (n-1 below the line), 0 for
	// fewer than two scores.
	StdDev float64 `json:"stdDev"`
}

// ToolScores say how well tools were chosen and used, each from 0 to 1: of a trial or, as
// means, of several. They say nothing of calls beyond those that are expected.
type ToolScores struct {
	// Selection is the share of the expected calls that were made.
	Selection float64 `json:"selection"`
	// Params is how many of the listed arguments are right; nil where no expected call
	// lists arguments.
	Params *float64 `json:"params"`
	// Overall is the mean of both, or Selection alone where Params is nil. As a mean, it
	// is that of the overall scores.
	Overall float64 `json:"overall"`
}

// TrialTools are the tool scores of a trial.
type TrialTools struct {
	ToolScores
	// Call is the call that meets an expected one best, as its number among the tool calls
	// of the transcript, from 0; nil when none of them meets one.
	Call *int `json:"call,omitempty"`
}

// Measure describes a quantity that was measured in trials.
type Measure struct {
	Distribution
	// MeanInterval is the 95 % interval of the mean, see [stats.StudentInterval]; nil for
	// fewer than two values.
	MeanInterval *Interval `json:"meanInterval"`
}

// BenchmarkResult is what trials measured of a model: those that were answered, of all tasks
// together. A measure is nil when no trial knows it.
type BenchmarkResult struct {
	// Trials is how many were answered.
	Trials int `json:"trials"`
	// FirstTokenMS and TokensPerSecond are those of [Speed].
	FirstTokenMS    *Measure `json:"firstTokenMs"`
	TokensPerSecond *Measure `json:"tokensPerSecond"`
	InputTokens     *Measure `json:"inputTokens"`
	OutputTokens    *Measure `json:"outputTokens"`
	// CostUSD is what the model cost in a trial.
	CostUSD *Measure `json:"costUsd"`
}
