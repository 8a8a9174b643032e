package record

// An Ending says how a run ended as a whole.
type Ending int

// The endings of runs. Only [EndingPassed] is a clear success.
const (
	EndingPassed Ending = iota
	EndingFailed
	EndingError
	EndingInterrupted
)

// EndingOf returns the ending of a run that has ended. A run that was cancelled with a reason
// cancelled itself because its budget was spent. The answer to the question of a run decides about
// it: side B is better, side B is not better, or the question is undecided, which is an error.
func EndingOf(status Status, why string, sum *Summary) Ending {
	switch {
	case status == StatusCancelled && why != "":
		return EndingError
	case status == StatusCancelled || status == StatusInterrupted:
		return EndingInterrupted
	case status != StatusCompleted || sum == nil:
		return EndingError
	case sum.Decision != nil:
		return endingOfDecision(sum.Decision)
	case sum.Errors > 0 || sum.Trials.Errors > 0 || besideErrors(sum):
		return EndingError
	case sum.Cancelled > 0 || sum.Trials.Cancelled > 0:
		return EndingInterrupted
	case sum.Passed < sum.Total || len(sum.Missed) > 0 || sum.Waiting() > 0:
		return EndingFailed
	case sum.Triggers != nil && sum.Triggers.Timeouts > 0:
		return EndingFailed // also without a metric
	case sum.Total == 0 && (sum.Triggers == nil || !sum.Triggers.Measured):
		return EndingFailed
	}
	return EndingPassed
}

// endingOfDecision returns the ending of a run that decides a question. The verdicts of its tasks
// do not matter, because both sides can fail tasks.
func endingOfDecision(d *Decision) Ending {
	switch d.Verdict {
	case DecidedBetter:
		return EndingPassed
	case DecidedNotBetter:
		return EndingFailed
	}
	return EndingError
}

// besideErrors reports whether errors occurred outside the suite's own tasks: in their
// baselines, or in trigger tests.
func besideErrors(sum *Summary) bool {
	return sum.Baseline != nil && sum.Baseline.Errors > 0 || sum.Triggers != nil && sum.Triggers.Errors > 0
}
