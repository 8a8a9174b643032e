package report

import (
	"waza/runner/figure"
	"waza/runner/record"
)

// rateCells formats a pass rate and its interval for tables. While a trial waits for a person's
// score, it returns the lowest and highest possible rate instead. It marks a mean over tasks.
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

// ScoreOf returns the score of a trial, also for older records, in which timeouts had none.
func ScoreOf(t *record.Trial) *float64 {
	if s := t.CountedScore(); s != nil {
		return s
	}
	return t.Score
}

// thresholds returns the values with which the pass rate of the task is compared.
func (t *Task) thresholds() []float64 {
	if t.PassThreshold == nil {
		return nil
	}
	return []float64{*t.PassThreshold}
}

// share formats a rate, if it is known.
func share(rate *float64) string {
	if rate == nil {
		return "–"
	}
	return figure.Percent(*rate)
}

// shareInterval formats the interval of a rate, if it is known.
func shareInterval(i *record.Interval) string {
	if i == nil {
		return "–"
	}
	return interval(*i)
}

func interval(i record.Interval) string { return figure.PercentInterval(i.Low, i.High) }

// bounds formats an interval to follow its number; it is empty if there is no interval.
func bounds(i *record.Interval, form func(low, high float64) string) string {
	if i == nil {
		return ""
	}
	return " " + form(i.Low, i.High)
}
