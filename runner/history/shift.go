package history

import (
	"waza/runner/stats"
)

// Shift is a lasting change: the task passes at another rate since a run, although it
// did not change itself. It is no flakiness: flips come and go, a shift stays.
type Shift struct {
	// Since is the first run at the new rate.
	Since string `json:"since"`
	// Before and After are the counted trials of the runs before it, up to an earlier
	// shift, and of those from it on, up to a later one.
	Before ShiftTrials `json:"before"`
	After  ShiftTrials `json:"after"`
	// P is the p-value, corrected for the number of runs at which it could have been.
	P float64 `json:"p"`
}

// ShiftTrials counts trials.
type ShiftTrials struct {
	Passed  int `json:"passed"`
	Counted int `json:"counted"`
}

// shiftLevel bounds the probability with which a task that passes at one rate
// throughout shows a shift at the first look; one that does show one is looked at again
// on both sides of it.
const shiftLevel = 1 - stats.DefaultConfidence

// epoch is a stretch of runs between which a task did not change.
type epoch []epochRun

type epochRun struct {
	id              string
	passed, counted int
	// stopping: the number of trials depends on what became of them, so they are no sample
	// for a test.
	stopping bool
}

func (e epoch) share() stats.Share {
	var s stats.Share
	for _, r := range e {
		s.Passed, s.N = s.Passed+r.passed, s.N+r.counted
	}
	return s
}

// split finds the shifts of an epoch, and returns the parts between them: it looks for
// the run since which the rate differs most by Fisher's test, and for more of them on
// both sides if that is beyond chance (binary segmentation; Scott and Knott 1974).
func (e epoch) split() (parts []epoch, shifts []Shift) {
	best, at := 1.0, 0
	for i := 1; i < len(e); i++ {
		if e[i].stopping || e[i-1].stopping {
			return []epoch{e}, nil
		}
		if p := stats.Fisher(e[:i].share(), e[i:].share()).P * float64(len(e)-1); p < best {
			best, at = p, i
		}
	}
	if best > shiftLevel {
		return []epoch{e}, nil
	}
	before, earlier := e[:at].split()
	after, later := e[at:].split()
	was, is := before[len(before)-1].share(), after[0].share()
	shift := Shift{Since: e[at].id, P: best, Before: ShiftTrials{was.Passed, was.N}, After: ShiftTrials{is.Passed, is.N}}
	return append(before, after...), append(append(earlier, shift), later...)
}
