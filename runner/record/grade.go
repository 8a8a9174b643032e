package record

import (
	"encoding/json"
	"time"
)

// Grade is what one grader made of one trial.
type Grade struct {
	Name   string  `json:"name"`
	Type   string  `json:"type"`
	Score  float64 `json:"score"`
	Passed bool    `json:"passed"`
	Weight float64 `json:"weight"`
	// Feedback tells a person why; empty when all is well.
	Feedback string `json:"feedback,omitempty"`
	// Details are the single checks or measures, as the grader's reference tells.
	Details     any   `json:"details,omitempty"`
	DurationMS  int64 `json:"durationMs"`
	NeedsReview bool  `json:"needsReview,omitempty"`
	// SkillsOnly: the grader says nothing of an agent without skills, so the
	// comparison with the baseline leaves it out.
	SkillsOnly bool `json:"skillsOnly,omitempty"`
	// Hash names what was asked, of graders that ask models: a later grading
	// takes the result over when it would ask the same.
	Hash string `json:"hash,omitempty"`
	// Error says why the grader could not do its work; Score and Passed mean
	// nothing then, and the trial is an error.
	Error string `json:"error,omitempty"`
	// Usage is what asking models cost this time, beside an error as well; nil when
	// none was asked, and for a result that was taken over. It is recorded as part of
	// what the trial spent.
	Usage *Usage `json:"-"`
	// Tools are the tool scores that the grader gave the trial, which records them.
	Tools *TrialTools `json:"-"`
}

// DefaultPass is the least score of a person that passes when the suite does
// not say.
const DefaultPass = 0.5

// Review is the details of graders that leave the score to a person: what is
// asked and, once there is one, what the person said.
type Review struct {
	Instructions string   `json:"instructions,omitempty"`
	Criteria     []string `json:"criteria,omitempty"`
	// Threshold is the least score that passes.
	Threshold float64 `json:"threshold"`
	// Reviewer and ReviewedAt tell who gave the score, and when; empty and nil
	// as long as it is waited for. The person's comment is the result's feedback.
	Reviewer   string     `json:"reviewer,omitempty"`
	ReviewedAt *time.Time `json:"reviewedAt,omitempty"`
	// Calibrates names the grader whose score is compared; of human_calibration only.
	Calibrates string `json:"calibrates,omitempty"`
	// Comparison is nil as long as either score is missing.
	Comparison *Calibration `json:"comparison,omitempty"`
}

// Calibration holds a person's score against that of the grader it calibrates.
type Calibration struct {
	Person       float64 `json:"person"`
	PersonPassed bool    `json:"personPassed"`
	Grader       float64 `json:"grader"`
	GraderPassed bool    `json:"graderPassed"`
	// Difference is the grader's score less the person's.
	Difference float64 `json:"difference"`
	// Agree: both let the trial pass, or neither.
	Agree bool `json:"agree"`
}

// The types of graders that ask persons.
const (
	TypeHuman            = "human"
	TypeHumanCalibration = "human_calibration"
)

// AsksPerson reports whether a person gives this result its score.
func (r *Grade) AsksPerson() bool { return r.Type == TypeHuman || r.Calibrates() }

// Calibrates reports whether the result has no part in verdict and score of its
// trial, but is there to compare another's score with.
func (r *Grade) Calibrates() bool { return r.Type == TypeHumanCalibration }

// Scored reports whether the score is one: it is not while a person's is waited
// for, nor when the grader could not do its work.
func (r *Grade) Scored() bool { return r.Error == "" && !r.NeedsReview }

// Review returns what a person is asked, and said. It decodes details that were
// read from a record, too; of a result that asks no person it is empty.
func (r *Grade) Review() Review {
	if review, ok := r.Details.(Review); ok || !r.AsksPerson() {
		return review
	}
	var review Review
	b, err := json.Marshal(r.Details)
	if err != nil || json.Unmarshal(b, &review) != nil {
		return Review{Threshold: DefaultPass} // a record that someone wrote by hand
	}
	return review
}
