package runner

import (
	"fmt"

	"waza/runner/figure"
	"waza/runner/stats"
)

// Decided tells of a task whose verdict was decided before all its trials were
// started, see [stats.Sequential].
type Decided struct {
	Verdict Verdict `json:"verdict"`
	// After is how many trials of the Of asked for had ended, counted in the order
	// of their numbers, when the verdict was decided.
	After int `json:"after"`
	Of    int `json:"of"`
	// Saved is how many trials were not started.
	Saved int `json:"saved"`
	// Confidence is 1 when the verdict could not change any more.
	Confidence float64 `json:"confidence"`
}

// String gives the decision as people are told it: "decided after 12 of 50 trials:
// passed at 95 % confidence".
func (d *Decided) String() string {
	s := fmt.Sprintf("decided after %d of %d trials: %s", d.After, d.Of, d.Verdict)
	if d.Confidence >= 1 {
		return s + ", whatever the others do"
	}
	return s + " at " + figure.Confidence(d.Confidence) + " confidence"
}

// canStop reports whether trials of a task may be left out once its verdict is
// decided. Those of trigger tests and of tasks that are compared with a baseline
// may not: there not the verdict is asked for, but how large something is, and pairs
// need both sides.
func (t *PlannedTask) canStop() bool {
	return t.Role == RoleTask && t.baseline == nil && t.Trials > 1
}

// decider decides the verdict on a task as its trials end. It looks at them in the
// order of their numbers, not in the order in which they end: trials that fail may
// well be the first to end, so looking at them first would be looking at a biased
// sample. The zero value never decides. It is guarded as its taskTally is.
type decider struct {
	rule stats.StoppingRule // a zero confidence means never

	next    int             // index of the next trial to look at
	ended   map[int]Verdict // those that ended before their turn
	sample  *stats.Sample   // the trials looked at; nil until the first
	failed  int             // how many of the sample failed, timeouts left out
	decided *Decided
	// open: the verdict of a trial that would have to be looked at is not known.
	open bool
}

// add takes the verdict of the trial at an index, and reports whether that decided
// the task's.
func (d *decider) add(index int, v Verdict) bool {
	if d.rule.Confidence == 0 || d.decided != nil || d.open {
		return false
	}
	if index != d.next {
		if d.ended == nil {
			d.ended = map[int]Verdict{}
		}
		d.ended[index] = v
		return false
	}
	for ok := true; ok && d.decided == nil && !d.open; v, ok = d.ended[d.next] {
		delete(d.ended, d.next)
		d.next++
		d.look(v)
	}
	return d.decided != nil
}

// look takes the next trial. One in error does not count: it leaves as many trials
// as if it had not been asked for.
func (d *decider) look(v Verdict) {
	if d.sample == nil {
		d.sample = stats.NewSample(d.rule)
	}
	if !v.counted() {
		d.open = v != Errored
		if v == Errored {
			d.sample.AddError()
		}
		return
	}
	if v == Failed {
		d.failed++
	}
	decision := d.sample.Add(v == Passed)
	if decision == stats.Undecided {
		return
	}
	d.decided = &Decided{Verdict: Passed, After: d.next, Of: d.rule.Trials, Confidence: d.rule.Confidence}
	if decision == stats.WillFail {
		d.decided.Verdict = Failed
		if d.failed == 0 {
			d.decided.Verdict = TimedOut
		}
	}
	if d.sample.Certain() {
		d.decided.Confidence = 1
	}
}

// verdict is the decision on a task of which so many trials were never started; nil
// when there is none, or nothing was left out.
func (d *decider) verdict(skipped int) *Decided {
	if d.decided == nil || skipped == 0 {
		return nil
	}
	decided := *d.decided
	decided.Saved = skipped
	return &decided
}

// skipDecided skips the trials of a task that are not started yet, for its verdict is
// decided. Those that run may end.
func (s *scheduler) skipDecided(t *taskRun, why *Decided) {
	nums := s.queue.drop(t)
	if len(nums) == 0 {
		return
	}
	s.run.logTask(t, "info", "%s", why)
	for _, num := range nums {
		s.complete(t, t.notStarted(num, Skipped, "not started: "+why.String()))
	}
}
