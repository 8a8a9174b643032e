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

// JudgeResult is what came of a run of the kind judge.
type JudgeResult struct {
	// Cases counts the trials of the suite's tasks that have ended, Judged those that
	// judges gave a score.
	Cases  int `json:"cases"`
	Judged int `json:"judged"`
	// Quality is how many cases have a quality score of 1, 2, 3, 4 and 5.
	Quality [5]int `json:"quality"`
	// Report is nil when no case was judged.
	Report *JudgeReport `json:"report,omitempty"`
}

// JudgeReport is the report of a run of the kind judge.
type JudgeReport struct {
	// OverallScore is 100 times the mean score of the tasks, rounded to one decimal.
	OverallScore float64 `json:"overallScore"`
	// OverallGrade is A+, A, A- and so on to D-, or F.
	OverallGrade string `json:"overallGrade"`
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
