package grader

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"waza/eval/text"
)

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
	Comparison *Comparison `json:"comparison,omitempty"`
}

// Comparison holds a person's score against that of the grader it calibrates.
type Comparison struct {
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
	typeHuman            = "human"
	typeHumanCalibration = "human_calibration"
)

// AsksPerson reports whether a person gives this result its score.
func (r *Result) AsksPerson() bool { return r.Type == typeHuman || r.Calibrates() }

// Calibrates reports whether the result has no part in verdict and score of its
// trial, but is there to compare another's score with.
func (r *Result) Calibrates() bool { return r.Type == typeHumanCalibration }

// Scored reports whether the score is one: it is not while a person's is waited
// for, nor when the grader could not do its work.
func (r *Result) Scored() bool { return r.Error == "" && !r.NeedsReview }

// Review returns what a person is asked, and said. It decodes details that were
// read from a record, too; of a result that asks no person it is empty.
func (r *Result) Review() Review {
	if review, ok := r.Details.(Review); ok || !r.AsksPerson() {
		return review
	}
	var review Review
	b, err := json.Marshal(r.Details)
	if err != nil || json.Unmarshal(b, &review) != nil {
		return Review{Threshold: defaultPass} // a record that someone wrote by hand
	}
	return review
}

// maxComment bounds what is kept of a person's comment.
const maxComment = 16 << 10

// SetReview gives the result a person's score, which is in [0, 1]. It takes the
// place of an earlier one. The error says why the result cannot take it.
func (r *Result) SetReview(score float64, comment, reviewer string, at time.Time) error {
	switch {
	case !r.AsksPerson():
		return fmt.Errorf("grader %q is of type %s, which asks no person", r.Name, r.Type)
	case r.Error != "":
		return fmt.Errorf("grader %q could not do its work: %s", r.Name, r.Error)
	}
	if err := CheckScore(score); err != nil {
		return err
	}
	review := r.Review()
	review.Reviewer, review.ReviewedAt = strings.ToValidUTF8(reviewer, "\uFFFD"), &at
	r.Score, r.Passed, r.NeedsReview = score, score >= review.Threshold-1e-9, false
	r.Feedback = text.Clip(strings.TrimSpace(strings.ToValidUTF8(comment, "\uFFFD")), maxComment)
	r.Details = review
	return nil
}

// CheckScore says what is wrong with a score that is not in [0, 1].
func CheckScore(score float64) error {
	if math.IsNaN(score) || score < 0 || score > 1 {
		return errors.New("the score must be a number from 0 to 1")
	}
	return nil
}

// KeepReviews gives results that ask a person the scores that persons gave
// before, where the grader of that name asked one then, too: of several of one
// name the first gets the first's. What is asked is that of results, also what
// score passes.
func KeepReviews(results, before []Result) {
	for i := range results {
		r := &results[i]
		if !r.AsksPerson() || !r.NeedsReview {
			continue
		}
		old := namesake(before, r, namesakes(results[:i], r))
		if old == nil || !old.Scored() {
			continue
		}
		if review := old.Review(); review.ReviewedAt != nil {
			_ = r.SetReview(old.Score, old.Feedback, review.Reviewer, *review.ReviewedAt) // it asks a person, and the score was one
		}
	}
}

// namesakes counts the results of the same grader, by name and type.
func namesakes(results []Result, r *Result) int {
	n := 0
	for i := range results {
		if results[i].Name == r.Name && results[i].Type == r.Type {
			n++
		}
	}
	return n
}

// namesake finds the result of the same grader before which there are skip others; nil for none.
func namesake(results []Result, r *Result, skip int) *Result {
	for i := range results {
		if results[i].Name != r.Name || results[i].Type != r.Type {
			continue
		}
		if skip == 0 {
			return &results[i]
		}
		skip--
	}
	return nil
}

// Compare brings the comparisons among the results of one trial up to date.
func Compare(results []Result) {
	for i := range results {
		r := &results[i]
		if !r.Calibrates() || r.Error != "" {
			continue
		}
		review := r.Review()
		if review.Comparison == nil && !r.Scored() {
			continue
		}
		review.Comparison = compare(r, results, review.Calibrates)
		r.Details = review
	}
}

func compare(r *Result, results []Result, name string) *Comparison {
	for i := range results {
		g := &results[i]
		if g == r || g.Name != name || !g.Scored() || !r.Scored() {
			continue
		}
		return &Comparison{
			Person: r.Score, PersonPassed: r.Passed, Grader: g.Score, GraderPassed: g.Passed,
			Difference: g.Score - r.Score, Agree: g.Passed == r.Passed,
		}
	}
	return nil
}
