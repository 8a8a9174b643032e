package exit

import (
	"waza/runner/record"
)

// OfRun returns the exit code of a run that has ended. Anything but a clear success has another
// code than success. A run that was cancelled with a reason cancelled itself because its budget
// was spent.
func OfRun(status record.Status, why string, sum *record.Summary) int {
	switch {
	case status == record.StatusCancelled && why != "":
		return Error
	case status == record.StatusCancelled || status == record.StatusInterrupted:
		return Interrupted
	case status != record.StatusCompleted || sum == nil:
		return Error
	case sum.Errors > 0 || sum.Trials.Errors > 0 || besideErrors(sum):
		return Error
	case sum.Cancelled > 0 || sum.Trials.Cancelled > 0:
		return Interrupted
	case sum.Passed < sum.Total || len(sum.Missed) > 0 || sum.Waiting() > 0:
		return Failed
	case sum.Triggers != nil && sum.Triggers.Timeouts > 0:
		return Failed // also without a metric
	case sum.Total == 0 && (sum.Triggers == nil || !sum.Triggers.Measured):
		return Failed
	}
	return Passed
}

// besideErrors reports whether errors occurred outside the suite's own tasks: in their
// baselines, or in trigger tests.
func besideErrors(sum *record.Summary) bool {
	return sum.Baseline != nil && sum.Baseline.Errors > 0 || sum.Triggers != nil && sum.Triggers.Errors > 0
}
