package tally

import (
	"fmt"
	"math"

	"waza/runner/internal/given"
	"waza/runner/record"
)

// CheckTrial returns an error for a trial of another process whose numbers cannot be counted, or
// whose verdict contradicts its grades.
func CheckTrial(res *record.Trial) error {
	if !res.Verdict.Known() {
		return fmt.Errorf("unknown verdict %q", res.Verdict)
	}
	if res.Score != nil {
		if err := given.Check(*res.Score); err != nil {
			return err
		}
	}
	for i := range res.Graders {
		g := &res.Graders[i]
		if err := given.Check(g.Score); err != nil {
			return fmt.Errorf("grader %q: %w", g.Name, err)
		}
		if !(g.Weight >= 0) || math.IsInf(g.Weight, 0) {
			return fmt.Errorf("grader %q: the weight is %v, expected 0 or more", g.Name, g.Weight)
		}
	}
	if verdict, _, _ := VerdictOf(res.Graders); res.Verdict == record.Passed && verdict != record.Passed {
		return fmt.Errorf("the verdict is passed, but that of its graders is %s", verdict)
	}
	return nil
}

// VerdictOf returns the verdict of graders on a trial whose executor ended normally. It is
// error, explained by message, when a grader failed to do its work. It is failed when a grader
// did not pass, which no person's score can change. It is needs_review while a person's score is
// missing, and otherwise passed.
//
// The score is the weighted mean of the existing scores. It is 1 when nothing was to be graded.
// It is nil for an error, and when only people give scores and none exists yet. Results that
// calibrate another grader affect neither verdict nor score. Results of checkpoints affect only
// the verdict.
func VerdictOf(graders []record.Grade) (verdict record.Verdict, score *float64, message string) {
	verdict = record.Passed
	sum, weights, waits, checkpoints := 0.0, 0.0, false, false
	for i := range graders {
		g := &graders[i]
		switch {
		case g.Error != "":
			return record.Errored, nil, fmt.Sprintf("grader %q: %s", g.Name, g.Error)
		case g.Calibrates():
			continue
		case g.NeedsReview:
			waits = true
			continue
		case !g.Passed:
			verdict = record.Failed
		}
		if g.AfterTurn > 0 {
			checkpoints = true
			continue
		}
		sum += g.Weight * g.Score
		weights += g.Weight
	}
	if waits && verdict == record.Passed {
		verdict = record.NeedsReview
	}
	if weights == 0 && waits {
		return verdict, nil, ""
	}
	mean := 1.0
	if checkpoints && verdict == record.Failed { // nothing else was to be graded
		mean = 0
	}
	if weights > 0 {
		mean = sum / weights
	}
	return verdict, &mean, ""
}
