package tally

import (
	"fmt"

	"waza/runner/figure"
	"waza/runner/record"
	"waza/runner/stats"
)

// RuleOf returns the stopping rule of the task, as requested at the start.
func RuleOf(t *record.TaskRef) stats.StoppingRule {
	r := stats.StoppingRule{Trials: t.Trials, Threshold: 1, Confidence: t.Stopping}
	if t.PassThreshold != nil {
		r.Threshold = *t.PassThreshold
	}
	return r
}

// DecisionText describes a decision for people: "decided after 12 of 50 trials: passed at 95 %
// confidence".
func DecisionText(d *record.Decided) string {
	s := fmt.Sprintf("decided after %d of %d trials: %s", d.After, d.Of, d.Verdict)
	if d.Confidence >= 1 {
		return s + ", whatever the remaining trials do"
	}
	return s + " at " + figure.Confidence(d.Confidence) + " confidence"
}

// A Decider decides the verdict of a task as its trials end. It processes them in the order of
// their numbers, not in the order in which they end. Failing trials often end first, so
// processing in that order would give a biased sample. The zero value never decides. A Decider
// is guarded like its [Task].
type Decider struct {
	Rule stats.StoppingRule // a zero confidence means never

	next    int                    // index of the next trial to process
	ended   map[int]record.Verdict // trials that ended before their turn
	Sample  *stats.Sample          // the processed trials; nil until the first
	failed  int                    // number of failed trials of the sample, without timeouts
	Decided *record.Decided
	// open reports whether the verdict of a trial that must be processed is unknown.
	open bool
}

// Add adds the verdict of the trial at an index, and reports whether it decides the verdict of
// the task.
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

// look processes the next trial. A trial in error does not count; it also reduces the number of
// requested trials.
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

// verdict returns the decision of a task with the given number of skipped trials; nil without a
// decision, or when no trial was skipped.
func (d *Decider) verdict(skipped int) *record.Decided {
	if d.Decided == nil || skipped == 0 {
		return nil
	}
	decided := *d.Decided
	decided.Saved = skipped
	return &decided
}
