package record

import (
	"encoding/json"
)

// TypePrompt is the type of graders that ask models to judge.
const TypePrompt = "prompt"

// CaseVerdict is what judges make of a trial in a suite of the kind judge.
type CaseVerdict struct {
	// Verdict is pass or fail or, of a trial that does not count and was not judged, the
	// trial's own.
	Verdict string `json:"verdict"`
	// QualityScore is 1 to 5; nil when no judge gave a score.
	QualityScore *int `json:"qualityScore"`
	// Summary is the reason that a judge gave, or why there is none; it may be empty.
	Summary string `json:"summary,omitempty"`
}

// Winner says which of two models gave the better answer.
type Winner string

// The winners of comparisons.
const (
	WinnerA Winner = "model_a"
	WinnerB Winner = "model_b"
	Tie     Winner = "tie"
)

// CaseComparison is what judges make of the answers of two models to one case: the trials of
// one number of one task of the suite.
type CaseComparison struct {
	// Num counts from 1 up to the number of comparisons of the run, in the order of the suite.
	Num    int    `json:"caseNum"`
	ModelA string `json:"modelA"`
	ModelB string `json:"modelB"`
	// TaskA and TaskB are the ids in the run of the task that both models did.
	TaskA    string `json:"taskA"`
	TaskB    string `json:"taskB"`
	TrialNum int    `json:"trialNum"`
	// Winner is empty when Error says why there is none.
	Winner Winner `json:"winner,omitempty"`
	// Confidence is the share of answers of judges, one for each order of the outputs and
	// each judge, that agree with Winner, 0 to 1.
	Confidence float64 `json:"confidence"`
	Reasoning  string  `json:"reasoning,omitempty"`
	Error      string  `json:"error,omitempty"`
	// Usage is what asking cost; nil when nothing is known of that.
	Usage *Usage `json:"usage,omitempty"`
	// Hash names what was asked.
	Hash string `json:"hash,omitempty"`
}

// ComparisonKey names the comparison by what it compares.
type ComparisonKey struct {
	TaskA    string `json:"taskA"`
	TaskB    string `json:"taskB"`
	TrialNum int    `json:"trialNum"`
}

// Key names the comparison by what it compares.
func (c *CaseComparison) Key() ComparisonKey { return ComparisonKey{c.TaskA, c.TaskB, c.TrialNum} }

// Points are what model A gets of a comparison: 1 for a win, 0.5 for a tie, 0 for a loss.
func (c *CaseComparison) Points() float64 {
	switch c.Winner {
	case WinnerA:
		return 1
	case Tie:
		return 0.5
	}
	return 0
}

// Comparing says how many comparisons a run of the kind judge makes.
type Comparing struct {
	Total int `json:"total"`
	// Done is how many are made, those of earlier sessions of the run included.
	Done int `json:"done"`
	// LeftOut is how many are not made because there are too many.
	LeftOut int `json:"leftOut,omitempty"`
	// Dropped are comparisons of earlier sessions that count no more.
	Dropped []ComparisonKey `json:"dropped,omitempty"`
}

// Findings are what a judge finds in all verdicts of a run.
type Findings struct {
	Judge      string   `json:"judge,omitempty"`
	Strengths  []string `json:"strengths"`
	Weaknesses []string `json:"weaknesses"`
	// Error says why there are none.
	Error string `json:"error,omitempty"`
	Usage *Usage `json:"usage,omitempty"`
	// Of names the verdicts that they were found in.
	Of string `json:"of,omitempty"`
}

// JudgeResult is what came of a run of the kind judge.
type JudgeResult struct {
	// Cases counts the trials of the suite's tasks that have ended, Judged those that
	// judges gave a score.
	Cases  int `json:"cases"`
	Judged int `json:"judged"`
	// Quality is how many cases have a quality score of 1, 2, 3, 4 and 5.
	Quality [5]int `json:"quality"`
	// Comparisons are those of each two models; absent of a run with one model.
	Comparisons []PairResult `json:"comparisons,omitempty"`
	// Missing is how many comparisons were not made: because the judge could not be
	// reached, or because the run ended before.
	Missing int `json:"comparisonsMissing,omitempty"`
	// LeftOut is how many comparisons were not to be made, because there are too many.
	LeftOut int `json:"comparisonsLeftOut,omitempty"`
	// Report is nil when no case was judged.
	Report *JudgeReport `json:"report,omitempty"`
}

// PairResult compares two models by all their answers.
type PairResult struct {
	ModelA string `json:"modelA"`
	ModelB string `json:"modelB"`
	// Wins, Losses and Ties count comparisons, as model A fared.
	Wins   int `json:"wins"`
	Losses int `json:"losses"`
	Ties   int `json:"ties"`
	// WinRate is the share of points that model A got, 0 to 1: a win is one point, a tie
	// half of one. It is the mean over tasks; nil without comparisons.
	WinRate *float64 `json:"winRate"`
	// WinRateInterval is the 95 % interval of WinRate, for these very tasks.
	WinRateInterval *Interval `json:"winRateInterval,omitempty"`
	// Cases are the comparisons, in the order of the suite.
	Cases []*CaseComparison `json:"cases,omitempty"`
}

// JudgeReport is the report of a run of the kind judge.
type JudgeReport struct {
	// OverallScore is 100 times the mean score of the tasks, rounded to one decimal.
	OverallScore float64 `json:"overallScore"`
	// OverallGrade is A+, A, A- and so on to D-, or F.
	OverallGrade string   `json:"overallGrade"`
	Strengths    []string `json:"strengths,omitempty"`
	Weaknesses   []string `json:"weaknesses,omitempty"`
	// Missing says why there are no strengths and weaknesses; empty when the judge gave them.
	Missing string `json:"missing,omitempty"`
	// Stale: verdicts changed since strengths and weaknesses were written.
	Stale bool `json:"stale,omitempty"`
	// Judge is the model that wrote them.
	Judge string `json:"judge,omitempty"`
}

// Opinion is what one judge made of a trial.
type Opinion struct {
	Judge  string  `json:"judge"`
	Score  float64 `json:"score"`
	Passed bool    `json:"passed"`
	Reason string  `json:"reason"`
}

// Opinions are those of the judges, of graders that ask models; nil for others.
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
