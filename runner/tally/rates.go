package tally

import (
	"slices"

	"waza/runner/record"
	"waza/runner/stats"
)

// RateOf returns the share of passed trials among the counted ones.
func RateOf(c record.Counts) record.Rate {
	switch counted := c.Counted(); {
	case c.NeedsReview > 0:
		all := float64(counted + c.NeedsReview)
		return record.Rate{PassRateBounds: &record.Interval{Low: float64(c.Passed) / all, High: float64(c.Passed+c.NeedsReview) / all}}
	case counted > 0:
		return rateFrom(stats.RateOf(stats.Share{Passed: c.Passed, N: counted}, stats.DefaultConfidence))
	}
	return record.Rate{}
}

func rateFrom(e stats.Estimate) record.Rate {
	return record.Rate{PassRate: &e.Value, PassRateInterval: &e.Interval}
}

// rate returns the pass rate of the task.
func (t *Task) rate() record.Rate {
	r := RateOf(t.Counts)
	if r.PassRate == nil || t.Early.Sample == nil {
		return r
	}
	r.PassRateInterval = nil
	if t.Early.comparable(t.Counts) {
		// Some of the ended trials may have ended after the decision.
		i := t.Early.Sample.Interval(stats.DefaultConfidence).Including(*r.PassRate)
		r.PassRateInterval = &i
	}
	return r
}

// passK returns pass@k and pass^k of the task.
func (t *Task) passK() []record.AtK {
	switch {
	case t.Counts.NeedsReview > 0:
		return nil
	case t.Early.Sample != nil:
		return t.Early.Sample.Curve(stats.MaxK)
	}
	return stats.Curve(t.Counts.Counted(), t.Counts.Passed, stats.MaxK)
}

// unbiased returns nil unless the task could stop early.
func (t *Task) unbiased() *record.Unbiased {
	if t.Counts.NeedsReview > 0 {
		return nil
	}
	return UnbiasedOf(t.Early.Sample, stats.Share{Passed: t.Counts.Passed, N: t.Counts.Counted()}, t.scoresPassed, t.scoresFailed)
}

// UnbiasedOf returns the estimates of a task with a sample and with counted trials; otherwise
// nil. The scores of passed trials and those of other trials are each unbiased. The unbiased
// rate weighs their means.
func UnbiasedOf(sample *stats.Sample, all stats.Share, passed, other []float64) *record.Unbiased {
	if sample == nil || all.N == 0 {
		return nil
	}
	rate, ok := sample.Unbiased()
	if !ok { // with that many trials the bias is small
		rate = all.Rate()
	}
	u := &record.Unbiased{PassRate: rate}
	p, o := stats.Describe(passed), stats.Describe(other)
	switch {
	case p.N+o.N == 0:
		return u
	case p.N == 0:
		u.Score = &o.Mean
	case o.N == 0:
		u.Score = &p.Mean
	default:
		score := float64(rate*p.Mean) + float64((1-rate)*o.Mean)
		u.Score = &score
	}
	return u
}

// comparable reports whether the trials ended according to the rule, and not according to
// another grader. When a task is graded again, trials may be missing that the rule would have
// required.
func (d *Decider) comparable(c record.Counts) bool {
	return d.Decided != nil || c.Skipped == 0
}

// RateOver returns the rate of the trials of several tasks with the given counts.
func RateOver(tasks []*record.Task, c record.Counts) record.Rate {
	r := RateOf(c)
	if r.PassRate == nil || !slices.ContainsFunc(tasks, (*record.Task).CouldStop) {
		return r
	}
	var parts []stats.Part
	var only *record.Interval
	for _, t := range tasks {
		switch {
		case t.Unbiased != nil:
			parts, only = append(parts, stats.PartOf([]float64{t.Unbiased.PassRate})), t.Trials.PassRateInterval
		case t.Trials.PassRate != nil:
			parts = append(parts, stats.RatePart(stats.Share{Passed: t.Trials.Passed, N: t.Trials.Counted()}))
		}
	}
	e, ok := stats.MeanOver(parts, stats.DefaultConfidence)
	if !ok {
		return r
	}
	if len(parts) == 1 && only != nil { // the interval of the only task
		e.Interval = only.Including(e.Value)
	}
	r = rateFrom(e)
	r.PassRateBasis = record.BasisTasks
	return r
}

// ScoreOver describes the mean scores of several tasks. It returns nil when none has one, and
// while trials wait for a person's score.
func ScoreOver(tasks []*record.Task) *record.ScoreStats {
	var values []float64
	var parts []stats.Part
	for _, t := range tasks {
		switch {
		case t.Trials.NeedsReview > 0:
			return nil
		case t.Unbiased != nil && t.Unbiased.Score != nil:
			values = append(values, *t.Unbiased.Score)
			parts = append(parts, stats.PartOf([]float64{*t.Unbiased.Score}))
		case t.Score != nil:
			values = append(values, t.Score.Mean)
			parts = append(parts, stats.Part{Distribution: t.Score.Distribution})
		}
	}
	e, ok := stats.MeanOver(parts, stats.DefaultConfidence)
	if !ok {
		return nil
	}
	return &record.ScoreStats{Distribution: stats.Describe(values), MeanInterval: e.Interval}
}
