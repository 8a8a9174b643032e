package tally

import (
	"cmp"
	"slices"

	"waza/runner/record"
	"waza/runner/stats"
)

// calibration collects the scores that people and a grader gave to the same trials.
type calibration struct {
	pairs   []stats.Pair
	pending int
}

func (t *Run) addCalibrations(results []record.Grade) {
	for i := range results {
		r := &results[i]
		if !r.Calibrates() || r.Error != "" {
			continue
		}
		review := r.Review()
		c := t.calibrated[review.Calibrates]
		if c == nil {
			c = &calibration{}
			t.calibrated[review.Calibrates] = c
		}
		if r.NeedsReview {
			c.pending++
		}
		if p := review.Comparison; p != nil {
			c.pairs = append(c.pairs, stats.Pair{
				Reference: p.Person, ReferencePassed: p.PersonPassed, Other: p.Grader, OtherPassed: p.GraderPassed,
			})
		}
	}
}

func (t *Run) calibrationResults() []record.CalibrationResult {
	var out []record.CalibrationResult
	for name, c := range t.calibrated {
		out = append(out, record.CalibrationResult{Grader: name, Pending: c.pending, Agreement: stats.Agree(c.pairs)})
	}
	slices.SortFunc(out, func(a, b record.CalibrationResult) int { return cmp.Compare(a.Grader, b.Grader) })
	return out
}
