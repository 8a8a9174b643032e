package history

import (
	"waza/runner/stats"
)

// A Shift is a lasting change: since a run, the task passes at a different rate, although the
// task did not change. A shift is not flakiness: flips come and go, but a shift stays.
type Shift struct {
	// Since is the first run at the new rate.
	Since string `json:"since"`
	// Before counts the trials of the runs before Since, back to an earlier shift. After counts
	// those from Since on, up to a later shift.
	Before ShiftTrials `json:"before"`
	After  ShiftTrials `json:"after"`
	// P is the p-value, corrected for the number of runs at which the shift could have been.
	P float64 `json:"p"`
}

// ShiftTrials counts trials.
type ShiftTrials struct {
	Passed  int `json:"passed"`
	Counted int `json:"counted"`
}

// shiftLevel is the largest probability with which a task with a constant rate shows a shift at
// the first look. If a task shows a shift, both sides of it are searched again.
const shiftLevel = 1 - stats.DefaultConfidence

// An epoch is a stretch of runs in which a task did not change.
type epoch []epochRun

type epochRun struct {
	id              string
	passed, counted int
	// stopping: the number of trials depends on their outcomes, so they are not a sample for a
	// test.
	stopping bool
}

func (e epoch) share() stats.Share {
	var s stats.Share
	for _, r := range e {
		s.Passed, s.N = s.Passed+r.passed, s.N+r.counted
	}
	return s
}

// split finds the shifts of an epoch, and returns the parts between them. It looks for the run
// since which the rate differs most by Fisher's test. If that difference is beyond chance, it
// searches both sides for more shifts (binary segmentation; Scott and Knott 1974).
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
