package runner

import (
	"slices"

	"waza/runner/stats"
)

// RateBasis says what a pass rate is a share or a mean of.
type RateBasis string

// BasisTasks is a mean over tasks, each of which weighs the same; no basis is the share
// of all that counted. The trials of tasks that could stop early are not pooled:
// tasks near their threshold have many, and would weigh more.
const BasisTasks RateBasis = "tasks"

// Rate is a pass rate with its 95 % interval. Both are nil when nothing was counted,
// and while something waits for a person's score: what failed an automatic grader is
// known at once, so a rate of what is known would be too low.
type Rate struct {
	PassRate *float64 `json:"passRate" doc:"Share of what counts that passed. Null when nothing counts, because all trials ended in error, were cancelled or were skipped: such trials say nothing of the agent. Null also while something waits for a person's score."`
	// PassRateInterval is Wilson's; of a task that could stop early [stats.Sample.Interval];
	// of a mean over tasks [stats.MeanInterval].
	PassRateInterval *stats.Interval `json:"passRateInterval"`
	// PassRateBounds are the rates that a person can still make of it: if all that
	// waits failed, and if all of it passed. Nil when nothing waits.
	PassRateBounds *stats.Interval `json:"passRateBounds,omitempty"`
	PassRateBasis  RateBasis       `json:"passRateBasis,omitempty"`
}

// rateOf is the share of those that count.
func rateOf(c Counts) Rate {
	switch counted := c.Counted(); {
	case c.NeedsReview > 0:
		all := float64(counted + c.NeedsReview)
		return Rate{PassRateBounds: &stats.Interval{Low: float64(c.Passed) / all, High: float64(c.Passed+c.NeedsReview) / all}}
	case counted > 0:
		rate := stats.Share{Passed: c.Passed, N: counted}.Rate()
		return rateFrom(stats.Estimate{Value: rate, Interval: stats.Wilson(c.Passed, counted, stats.DefaultConfidence)})
	}
	return Rate{}
}

func rateFrom(e stats.Estimate) Rate {
	return Rate{PassRate: &e.Value, PassRateInterval: &e.Interval}
}

// Unbiased holds estimates without the bias of stopping early, see
// [stats.Sample.Unbiased]. A single one varies more than the share of trials that
// passed does.
type Unbiased struct {
	PassRate float64 `json:"passRate"`
	// Score is nil when no trial has one.
	Score *float64 `json:"score"`
}

// rate is the task's.
func (t *taskTally) rate() Rate {
	r := rateOf(t.counts)
	if r.PassRate == nil || t.early.sample == nil {
		return r
	}
	r.PassRateInterval = nil
	if t.early.comparable(t.counts) {
		i := holding(t.early.sample.Interval(stats.DefaultConfidence), *r.PassRate)
		r.PassRateInterval = &i
	}
	return r
}

// holding widens an interval so that it holds the rate of all trials that ended, some
// of which may have ended after the decision.
func holding(i stats.Interval, rate float64) stats.Interval {
	return stats.Interval{Low: min(i.Low, rate), High: max(i.High, rate)}
}

// passK is the task's.
func (t *taskTally) passK() []stats.AtK {
	switch {
	case t.counts.NeedsReview > 0:
		return nil
	case t.early.sample != nil:
		return t.early.sample.Curve(stats.MaxK)
	}
	return stats.Curve(t.counts.Counted(), t.counts.Passed, stats.MaxK)
}

// unbiased is nil unless the task could stop early.
func (t *taskTally) unbiased() *Unbiased {
	if t.counts.NeedsReview > 0 {
		return nil
	}
	return unbiasedOf(t.early.sample, stats.Share{Passed: t.counts.Passed, N: t.counts.Counted()}, t.scoresPassed, t.scoresFailed)
}

// unbiasedOf gives the estimates of a task with a sample and with trials that count;
// else nil. Scores of trials that passed and of the others are unbiased among
// themselves: the unbiased rate weighs their means.
func unbiasedOf(sample *stats.Sample, all stats.Share, passed, other []float64) *Unbiased {
	if sample == nil || all.N == 0 {
		return nil
	}
	rate, ok := sample.Unbiased()
	if !ok { // of that many trials the bias is small
		rate = all.Rate()
	}
	u := &Unbiased{PassRate: rate}
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

// comparable reports whether the trials ended as the rule had it, and not as another
// grader did: of tasks that are graded again, trials may be missing that would have
// been wanted.
func (d *decider) comparable(c Counts) bool {
	return d.decided != nil || c.Skipped == 0
}

// rateOver is the rate of the trials of several tasks, of which the counts are given.
func rateOver(tasks []*TaskResult, c Counts) Rate {
	r := rateOf(c)
	if r.PassRate == nil || !slices.ContainsFunc(tasks, (*TaskResult).couldStop) {
		return r
	}
	var rates []float64
	for _, t := range tasks {
		switch {
		case t.Unbiased != nil:
			rates = append(rates, t.Unbiased.PassRate)
		case t.Trials.PassRate != nil:
			rates = append(rates, *t.Trials.PassRate)
		}
	}
	r = rateFrom(stats.MeanOf(rates, stats.DefaultConfidence))
	r.PassRateBasis = BasisTasks
	return r
}

func (res *TaskResult) couldStop() bool { return res.Unbiased != nil }

// scoreOver describes the mean scores of several tasks; nil when none has one, and
// while trials wait for a person's score.
func scoreOver(tasks []*TaskResult) *ScoreStats {
	stopping := slices.ContainsFunc(tasks, (*TaskResult).couldStop)
	var values []float64
	var estimates []stats.Estimate
	for _, t := range tasks {
		switch {
		case t.Trials.NeedsReview > 0:
			return nil
		case t.Unbiased != nil && t.Unbiased.Score != nil:
			values = append(values, *t.Unbiased.Score)
		case t.Score != nil:
			values = append(values, t.Score.Mean)
			estimates = append(estimates, stats.Estimate{Value: t.Score.Mean, Interval: t.Score.MeanInterval})
		}
	}
	if len(values) == 0 {
		return nil
	}
	s := &ScoreStats{Summary: stats.Describe(values)}
	if stopping {
		s.MeanInterval = stats.MeanInterval(values, stats.DefaultConfidence)
	} else if mean, ok := stats.Mean(estimates); ok {
		s.MeanInterval = mean.Interval
	}
	return s
}
