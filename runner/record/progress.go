package record

import (
	"slices"
	"time"
)

// Progress is the state of a run, derived from its recorded events.
type Progress struct {
	Status    Status     `json:"status"`
	Seq       int64      `json:"seq"` // number of the last event; 0 when read from the result of an ended run
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt"`
	// Tasks and Trials count the suite's tasks and their trials that have ended so far.
	Tasks  Counts `json:"tasks"`
	Trials Counts `json:"trials"`
	// Deciding is the state of the question of an active run; nil before its first pairs, and for other runs.
	Deciding *DecisionProgress `json:"deciding,omitempty"`
	// Summary is nil until the run has completed.
	Summary *Summary `json:"summary,omitempty"`
	Error   string   `json:"error,omitempty"`
	// AmendedAt is when the record was last changed after the run ended; nil without a change.
	AmendedAt *time.Time `json:"amendedAt,omitempty"`
}

// TookMS returns the duration of the run in milliseconds: that of its summary or, for a run that
// ended without one, the time until its end. It returns nil for an active run.
func (p *Progress) TookMS() *int64 {
	switch {
	case p.EndedAt == nil:
		return nil
	case p.Summary != nil:
		return &p.Summary.DurationMS
	}
	ms := p.EndedAt.Sub(p.StartedAt).Milliseconds()
	return &ms
}

// MayWait reports whether the run may have pending questions, judging by its counts. Pending
// calibrations are visible only in a summary.
func (p *Progress) MayWait() bool {
	return p.Trials.NeedsReview > 0 || p.Summary == nil || p.Summary.Waiting() > 0 ||
		slices.ContainsFunc(p.Summary.Calibrations, func(c CalibrationResult) bool { return c.Pending > 0 })
}
