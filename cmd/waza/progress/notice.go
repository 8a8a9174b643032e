package progress

import (
	"time"

	"waza/cmd/waza/interrupt"
	"waza/eval/text"
	"waza/runner/report"
)

// interrupted notes that an interrupt took the run to a step.
func (p *progress) interrupted(step int, now time.Time) { p.step, p.since = step, now }

// notice describes the state of an interrupted run. It is empty for a run without interrupt.
func (p *progress) notice(now time.Time) string {
	switch p.step {
	case 0:
		return ""
	case interrupt.Stop:
		return "interrupted: " + p.awaited(now) + " (Ctrl-C again cancels " + p.them() + ")"
	}
	return "interrupted: cancelling running trials (Ctrl-C again exits at once)"
}

// awaited describes what a stopped run waits for, and the longest time that can take.
func (p *progress) awaited(now time.Time) string {
	n := p.run.Running.Trials()
	if n == 0 {
		return "no trials are running, the run is about to end"
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
		return "the remaining work"
	case 1:
		return "it"
	}
	return "them"
}

// limit returns how much longer running trials can take. For a trial that repeats an attempt,
// the current attempt started before the run was stopped. The limit is unknown when the record
// has no deadlines, or when the last deadline has passed and the trials are being ended.
func (p *progress) limit(now time.Time) (left time.Duration, known bool) {
	for num, t := range p.run.Running {
		if num < 1 || num > len(p.limits) || p.limits[num-1] <= 0 {
			return 0, false
		}
		for _, trial := range t.Trials {
			started := trial.Since
			if trial.Retried {
				started = p.since
			}
			left = max(left, started.Add(p.limits[num-1]).Sub(now))
		}
	}
	return left, left > 0
}
