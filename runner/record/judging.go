package record

import (
	"encoding/json"
)

// TypePrompt is the type of graders that ask models to judge.
const TypePrompt = "prompt"

// CaseVerdict is the judgment of a trial in a suite of kind judge.
type CaseVerdict struct {
	// Verdict is pass or fail. For a trial that does not count and was not judged, it is the
	// trial's own verdict.
	Verdict string `json:"verdict"`
	// QualityScore is 1 to 5; nil when no judge gave a score.
	QualityScore *int `json:"qualityScore"`
	// Summary is the reason that a judge gave, or the reason why there is no verdict; it may be
	// empty.
	Summary string `json:"summary,omitempty"`
}

// Winner names the model with the better answer.
type Winner string

// The winners of comparisons.
const (
	WinnerA Winner = "model_a"
	WinnerB Winner = "model_b"
	Tie     Winner = "tie"
)

// CaseComparison compares the answers of two models to one case: two trials with the same number
// of the same task of the suite.
type CaseComparison struct {
	// Num counts from 1 to the number of comparisons of the run, in the order of the suite.
	Num    int    `json:"caseNum"`
	ModelA string `json:"modelA"`
	ModelB string `json:"modelB"`
	// TaskA and TaskB are the ids of the task in the run, once per model.
	TaskA    string `json:"taskA"`
	TaskB    string `json:"taskB"`
	TrialNum int    `json:"trialNum"`
	// Winner is empty when Error is set.
	Winner Winner `json:"winner,omitempty"`
	// Confidence is the share of judges' answers that agree with Winner, 0 to 1. Each judge
	// answers once for each order of the outputs.
	Confidence float64 `json:"confidence"`
	Reasoning  string  `json:"reasoning,omitempty"`
	// PreferredFirst and PreferredSecond are the judges who preferred the first or the second
	// output in both orders. They prefer a place, not an output.
	PreferredFirst  []string `json:"preferredFirst,omitempty"`
	PreferredSecond []string `json:"preferredSecond,omitempty"`
	// Judges are all judges of the comparison; absent from older records.
	Judges []string `json:"judges,omitempty"`
	Error  string   `json:"error,omitempty"`
	// Usage is the cost of the comparison; nil when it is unknown.
	Usage *Usage `json:"usage,omitempty"`
	// Hash identifies the question.
	Hash string `json:"hash,omitempty"`
}

// ComparisonKey identifies a comparison by the trials that it compares.
type ComparisonKey struct {
	TaskA    string `json:"taskA"`
	TaskB    string `json:"taskB"`
	TrialNum int    `json:"trialNum"`
}

// Key returns the key of the comparison.
func (c *CaseComparison) Key() ComparisonKey { return ComparisonKey{c.TaskA, c.TaskB, c.TrialNum} }

// Points returns the points of model A in the comparison: 1 for a win, 0.5 for a tie, 0 for a
// loss.
func (c *CaseComparison) Points() float64 {
	switch c.Winner {
	case WinnerA:
		return 1
	case Tie:
		return 0.5
	}
	return 0
}

// Comparing is the progress of the comparisons in a run of kind judge.
type Comparing struct {
	Total int `json:"total"`
	// Done is the number of finished comparisons, including those before the run was last
	// resumed.
	Done int `json:"done"`
	// LeftOut is the number of comparisons that are left out because of the limit.
	LeftOut int `json:"leftOut,omitempty"`
	// Dropped lists comparisons that became void when the run was resumed, and those that are made
	// again.
	Dropped []ComparisonKey `json:"dropped,omitempty"`
}

// Findings are the strengths and weaknesses that a judge finds in all verdicts of a run.
type Findings struct {
	Judge      string   `json:"judge,omitempty"`
	Strengths  []string `json:"strengths"`
	Weaknesses []string `json:"weaknesses"`
	// Error is the reason why there are no findings.
	Error string `json:"error,omitempty"`
	Usage *Usage `json:"usage,omitempty"`
	// Of identifies the verdicts that the findings are based on.
	Of string `json:"of,omitempty"`
}

// JudgeResult is the result of a run of kind judge.
type JudgeResult struct {
	// Cases is the number of trials of the suite's tasks that have ended. Judged is the number
	// of trials that a judge scored.
	Cases  int `json:"cases"`
	Judged int `json:"judged"`
	// Quality holds the numbers of cases with a quality score of 1, 2, 3, 4 and 5.
	Quality [5]int `json:"quality"`
	// Comparisons has one entry per pair of models; absent in a run with one model.
	Comparisons []PairResult `json:"comparisons,omitempty"`
	// Ranking ranks the models by all comparisons together, the strongest first; absent for fewer
	// than three models, because the win rate of their pair says the same.
	Ranking []ModelStrength `json:"ranking,omitempty"`
	// Missing is the number of comparisons that were not made, because the judge was unreachable
	// or the run ended first.
	Missing int `json:"comparisonsMissing,omitempty"`
	// LeftOut is the number of comparisons that were left out because of the limit.
	LeftOut int `json:"comparisonsLeftOut,omitempty"`
	// Report is nil when no case was judged.
	Report *JudgeReport `json:"report,omitempty"`
}

// PairResult compares two models over all their answers.
type PairResult struct {
	ModelA string `json:"modelA"`
	ModelB string `json:"modelB"`
	// Wins, Losses and Ties count comparisons from the view of model A.
	Wins   int `json:"wins"`
	Losses int `json:"losses"`
	Ties   int `json:"ties"`
	// WinRate is model A's share of the points, 0 to 1. A win is one point, a tie half a point.
	// It is the mean over tasks; nil without comparisons.
	WinRate *float64 `json:"winRate"`
	// WinRateInterval is the 95 % interval of WinRate. It applies to these tasks only.
	WinRateInterval *Interval `json:"winRateInterval,omitempty"`
	// Cases lists the comparisons in the order of the suite.
	Cases []*CaseComparison `json:"cases,omitempty"`
}

// ModelStrength is the strength of a model by Bradley and Terry, see [stats.RankModels].
type ModelStrength struct {
	Model string `json:"model"`
	// Rank is the place, from 1. Models of different groups were not compared, not even through
	// others: each group, from 1, has ranks of its own.
	Rank  int `json:"rank"`
	Group int `json:"group"`
	// Strength is the probability of a better answer than that of the average model of the group.
	Strength float64 `json:"strength"`
	// StrengthInterval is its 95 % interval. It is about tasks like these.
	StrengthInterval Interval `json:"strengthInterval"`
}

// JudgeReport is the report of a run of kind judge.
type JudgeReport struct {
	// OverallScore is 100 times the mean score of the tasks that have one in every cell, rounded
	// to one decimal. [Summary] lists the others. It is nil when there is no such task.
	OverallScore *float64 `json:"overallScore"`
	// OverallGrade is A+, A, A- and so on to D-, or F; empty without a score.
	OverallGrade string   `json:"overallGrade"`
	Strengths    []string `json:"strengths,omitempty"`
	Weaknesses   []string `json:"weaknesses,omitempty"`
	// Missing is the reason why strengths and weaknesses are missing; empty when the judge gave
	// them.
	Missing string `json:"missing,omitempty"`
	// Stale reports whether verdicts changed after strengths and weaknesses were written.
	Stale bool `json:"stale,omitempty"`
	// Judge is the model that wrote the strengths and weaknesses.
	Judge string `json:"judge,omitempty"`
}

// Opinion is one judge's assessment of a trial.
type Opinion struct {
	Judge  string  `json:"judge"`
	Score  float64 `json:"score"`
	Passed bool    `json:"passed"`
	Reason string  `json:"reason"`
	// Orders are the judge's winners for both orders of the outputs: with, without or tie. It is
	// empty unless the judge compared two outputs.
	Orders []string `json:"orders,omitempty"`
}

// Place returns which of two outputs the judge preferred in both orders: "first" or "second". It
// returns an empty text if the judge preferred the same output in both, or called one a tie.
func (o *Opinion) Place() string {
	switch {
	case len(o.Orders) != 2:
	case o.Orders[0] == "with" && o.Orders[1] == "without":
		return "first"
	case o.Orders[0] == "without" && o.Orders[1] == "with":
		return "second"
	}
	return ""
}

// JudgePosition shows that a judge who compares two outputs prefers a place: the first output or
// the second, whichever it is.
type JudgePosition struct {
	Judge string `json:"judge"`
	// Compared is the number of comparisons in both orders. First and Second count those in
	// which the judge preferred that place in both orders.
	Compared int `json:"compared"`
	First    int `json:"first"`
	Second   int `json:"second"`
	// P is the p-value of a sign test of First against Second.
	P float64 `json:"p"`
}

// Opinions returns the opinions of the judges of a grader that asks models; nil for other
// graders.
func (r *Grade) Opinions() []Opinion {
	if r.Type != TypePrompt || r.Details == nil {
		return nil
	}
	var details struct {
		Opinions []Opinion `json:"opinions"`
	}
	b, err := json.Marshal(r.Details)
	if err != nil || json.Unmarshal(b, &details) != nil {
		return nil
	}
	return details.Opinions
}
