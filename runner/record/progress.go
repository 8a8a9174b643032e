package record

import (
	"slices"
	"time"
)

// Progress is the state of a run as its recorded events tell it.
type Progress struct {
	Status    Status     `json:"status"`
	Seq       int64      `json:"seq"` // of the last event; 0 when it is read from the result of a run that has ended
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt"`
	// Tasks and Trials count what has ended so far, of the tasks of the suite.
	Tasks  Counts `json:"tasks"`
	Trials Counts `json:"trials"`
	// Summary is nil until the run has completed.
	Summary *Summary `json:"summary,omitempty"`
	Error   string   `json:"error,omitempty"`
	// AmendedAt is when the record was last changed after the run; nil when it never was.
	AmendedAt *time.Time `json:"amendedAt,omitempty"`
}

// MayWait tells by the numbers whether a run may have pending questions. What
// calibrations wait for, only a summary tells.
func (p *Progress) MayWait() bool {
	return p.Trials.NeedsReview > 0 || p.Summary == nil || p.Summary.Waiting() > 0 ||
		slices.ContainsFunc(p.Summary.Calibrations, func(c CalibrationResult) bool { return c.Pending > 0 })
}
