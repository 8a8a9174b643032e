package progress

import (
	"time"

	"waza/cmd/waza/interrupt"
	"waza/eval/text"
	"waza/runner/report"
)

// interrupted notes that an interrupt took the run to a step.
func (p *progress) interrupted(step int, now time.Time) { p.step, p.since = step, now }

// notice is what there is to say of a run that was interrupted; empty for one
// that was not.
func (p *progress) notice(now time.Time) string {
	switch p.step {
	case 0:
		return ""
	case interrupt.Stop:
		return "interrupted: " + p.awaited(now) + " (Ctrl-C again cancels " + p.them() + ")"
	}
	return "interrupted: the trials that run are cancelled (Ctrl-C again leaves at once)"
}

// awaited tells what a run that was stopped waits for, and for how long at most.
func (p *progress) awaited(now time.Time) string {
	n := p.run.Running.Trials()
	if n == 0 {
		return "no trial runs any more, the run is about to end"
	}
	text := "waiting for " + text.Count(n, "trial", "trials")
	if left, known := p.limit(now); known {
		text += ", at most " + report.Duration(left)
	}
	return text
}

func (p *progress) them() string {
	switch p.run.Running.Trials() {
	case 0:
		return "what is left to do"
	case 1:
		return "it"
	}
	return "them"
}

// limit is how long the trials that run may still take. Of one that is not in its
// first attempt it is known that this began before the run was stopped. The limit
// is unknown when the record does not tell deadlines, or the last has passed and
// what runs is being ended.
func (p *progress) limit(now time.Time) (left time.Duration, known bool) {
	for num, t := range p.run.Running {
		if num < 1 || num > len(p.limits) || p.limits[num-1] <= 0 {
			return 0, false
		}
		for _, trial := range t.Trials {
			began := trial.Since
			if trial.Retried {
				began = p.since
			}
			left = max(left, began.Add(p.limits[num-1]).Sub(now))
		}
	}
	return left, left > 0
}
