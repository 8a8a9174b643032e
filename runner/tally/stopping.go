package tally

import (
	"fmt"

	"waza/runner/figure"
	"waza/runner/record"
	"waza/runner/stats"
)

// RuleOf says when the task needs no more trials, as it was asked for at the start.
func RuleOf(t *record.TaskRef) stats.StoppingRule {
	r := stats.StoppingRule{Trials: t.Trials, Threshold: 1, Confidence: t.Stopping}
	if t.PassThreshold != nil {
		r.Threshold = *t.PassThreshold
	}
	return r
}

// DecisionText gives the decision as people are told it: "decided after 12 of 50 trials:
// passed at 95 % confidence".
func DecisionText(d *record.Decided) string {
	s := fmt.Sprintf("decided after %d of %d trials: %s", d.After, d.Of, d.Verdict)
	if d.Confidence >= 1 {
		return s + ", whatever the others do"
	}
	return s + " at " + figure.Confidence(d.Confidence) + " confidence"
}

// Decider decides the verdict on a task as its trials end. It looks at them in the
// order of their numbers, not in the order in which they end: trials that fail may
// well be the first to end, so looking at them first would be looking at a biased
// sample. The zero value never decides. It is guarded as its [Task] is.
type Decider struct {
	Rule stats.StoppingRule // a zero confidence means never

	next    int                    // index of the next trial to look at
	ended   map[int]record.Verdict // those that ended before their turn
	Sample  *stats.Sample          // the trials looked at; nil until the first
	failed  int                    // how many of the sample failed, timeouts left out
	Decided *record.Decided
	// open: the verdict of a trial that would have to be looked at is not known.
	open bool
}

// Add takes the verdict of the trial at an index, and reports whether that decided
// the task's.
func (d *Decider) Add(index int, v record.Verdict) bool {
	if d.Rule.Confidence == 0 || d.Decided != nil || d.open {
		return false
	}
	if index != d.next {
		if d.ended == nil {
			d.ended = map[int]record.Verdict{}
		}
		d.ended[index] = v
		return false
	}
	for ok := true; ok && d.Decided == nil && !d.open; v, ok = d.ended[d.next] {
		delete(d.ended, d.next)
		d.next++
		d.look(v)
	}
	return d.Decided != nil
}

// look takes the next trial. One in error does not count: it leaves as many trials
// as if it had not been asked for.
func (d *Decider) look(v record.Verdict) {
	if d.Sample == nil {
		d.Sample = stats.NewSample(d.Rule)
	}
	if !v.Counted() {
		d.open = v != record.Errored
		if v == record.Errored {
			d.Sample.AddError()
		}
		return
	}
	if v == record.Failed {
		d.failed++
	}
	decision := d.Sample.Add(v == record.Passed)
	if decision == stats.Undecided {
		return
	}
	d.Decided = &record.Decided{Verdict: record.Passed, After: d.next, Of: d.Rule.Trials, Confidence: d.Rule.Confidence}
	if decision == stats.WillFail {
		d.Decided.Verdict = record.Failed
		if d.failed == 0 {
			d.Decided.Verdict = record.TimedOut
		}
	}
	if d.Sample.Certain() {
		d.Decided.Confidence = 1
	}
}

// verdict is the decision on a task of which so many trials were never started; nil
// when there is none, or nothing was left out.
func (d *Decider) verdict(skipped int) *record.Decided {
	if d.Decided == nil || skipped == 0 {
		return nil
	}
	decided := *d.Decided
	decided.Saved = skipped
	return &decided
}
