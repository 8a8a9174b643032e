package report

import (
	"waza/runner/figure"
	"waza/runner/record"
)

// rateCells are a pass rate and its interval as tables show them. While something waits
// for a person's score there is no rate, but the worst and the best that it can become.
// A mean over tasks says that it is one.
func rateCells(r record.Rate, thresholds ...float64) (rate, in string) {
	rate, in = "–", "–"
	switch {
	case r.PassRateBounds != nil:
		return interval(*r.PassRateBounds), "to review"
	case r.PassRate == nil:
		return rate, in
	}
	rate = figure.PercentAgainst(*r.PassRate, thresholds...)
	if r.PassRateBasis == record.BasisTasks {
		rate += " by task"
	}
	if r.PassRateInterval != nil {
		in = interval(*r.PassRateInterval)
	}
	return rate, in
}

// ScoreOf is the score of a trial, also in older records, where timeouts had none.
func ScoreOf(t *record.Trial) *float64 {
	if s := t.CountedScore(); s != nil {
		return s
	}
	return t.Score
}

// thresholds are what the pass rate of the task is compared with.
func (t *Task) thresholds() []float64 {
	if t.PassThreshold == nil {
		return nil
	}
	return []float64{*t.PassThreshold}
}

func interval(i record.Interval) string { return figure.PercentInterval(i.Low, i.High) }

// bounds is an interval after the number that it belongs to; empty without one.
func bounds(i *record.Interval, form func(low, high float64) string) string {
	if i == nil {
		return ""
	}
	return " " + form(i.Low, i.High)
}
