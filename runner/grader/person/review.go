package person

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"waza/eval/text"
	"waza/runner/internal/given"
	"waza/runner/record"
)

// maxComment is the most bytes kept of a person's comment.
const maxComment = 16 << 10

// SetReview gives the result a person's score, which must be in [0, 1]. It replaces an earlier
// score. It returns an error if the result does not ask a person or the score is invalid.
func SetReview(r *record.Grade, score float64, comment, reviewer string, at time.Time) error {
	switch {
	case !r.AsksPerson():
		return fmt.Errorf("grader %q has type %s, which does not ask a person", r.Name, r.Type)
	case r.Error != "":
		return fmt.Errorf("grader %q could not do its work: %s", r.Name, r.Error)
	}
	if err := given.Check(score); err != nil {
		return err
	}
	review := r.Review()
	review.Reviewer, review.ReviewedAt = strings.ToValidUTF8(reviewer, "\uFFFD"), &at
	r.Score, r.Passed, r.NeedsReview = score+0, score >= review.Threshold-1e-9, false
	r.Feedback = text.Clip(strings.TrimSpace(strings.ToValidUTF8(comment, "\uFFFD")), maxComment)
	r.Details = review
	return nil
}

// KeepReviews copies people's scores from the earlier results before to results that ask a
// person again. It matches graders by name and type; of several with the same name and type the
// first gets the first's score, and so on. The question and the passing score are those of
// results.
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
			// It cannot fail: the grader asks a person, and the score was valid before.
			_ = SetReview(r, old.Score, old.Feedback, review.Reviewer, *review.ReviewedAt)
		}
	}
}

// namesakes returns the number of results with the same grader name and type.
func namesakes(results []record.Grade, r *record.Grade) int {
	n := 0
	for i := range results {
		if results[i].Name == r.Name && results[i].Type == r.Type {
			n++
		}
	}
	return n
}

// namesake returns the result of the same grader after skip others, or nil.
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

// WithDrawn returns results with the questions and answers of before that waza added to trials
// that it drew, because no grader of the suite asks them again.
func WithDrawn(results, before []record.Grade) []record.Grade {
	for i := range before {
		if before[i].Drawn() {
			results = append(slices.Clip(results), before[i])
		}
	}
	return results
}

// WithoutDrawn returns results without those that waza added to trials that it drew. Another run
// that reuses a trial did not draw it.
func WithoutDrawn(results []record.Grade) []record.Grade {
	return slices.DeleteFunc(slices.Clone(results), func(r record.Grade) bool { return r.Drawn() })
}

// Compare updates the comparisons among the results of one trial.
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
