package person

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"waza/eval/text"
	"waza/runner/record"
)

// maxComment bounds what is kept of a person's comment.
const maxComment = 16 << 10

// SetReview gives the result a person's score, which is in [0, 1]. It takes the
// place of an earlier one. The error says why the result cannot take it.
func SetReview(r *record.Grade, score float64, comment, reviewer string, at time.Time) error {
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
func KeepReviews(results, before []record.Grade) {
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
			_ = SetReview(r, old.Score, old.Feedback, review.Reviewer, *review.ReviewedAt) // it asks a person, and the score was one
		}
	}
}

// namesakes counts the results of the same grader, by name and type.
func namesakes(results []record.Grade, r *record.Grade) int {
	n := 0
	for i := range results {
		if results[i].Name == r.Name && results[i].Type == r.Type {
			n++
		}
	}
	return n
}

// namesake finds the result of the same grader before which there are skip others; nil for none.
func namesake(results []record.Grade, r *record.Grade, skip int) *record.Grade {
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
func Compare(results []record.Grade) {
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

func compare(r *record.Grade, results []record.Grade, name string) *record.Calibration {
	for i := range results {
		g := &results[i]
		if g == r || g.Name != name || !g.Scored() || !r.Scored() {
			continue
		}
		return &record.Calibration{
			Person: r.Score, PersonPassed: r.Passed, Grader: g.Score, GraderPassed: g.Passed,
			Difference: g.Score - r.Score, Agree: g.Passed == r.Passed,
		}
	}
	return nil
}
