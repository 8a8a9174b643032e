package exit

import "waza/runner"

// OfRun is the code of a run that has ended. What is not plainly a success
// never gets that of one. A run that was cancelled and says why did so itself,
// its budget spent.
func OfRun(status runner.Status, why string, sum *runner.Summary) int {
	switch {
	case status == runner.StatusCancelled && why != "":
		return Error
	case status == runner.StatusCancelled || status == runner.StatusInterrupted:
		return Interrupted
	case status != runner.StatusCompleted || sum == nil:
		return Error
	case sum.Errors > 0 || sum.Trials.Errors > 0 || besideErrors(sum):
		return Error
	case sum.Cancelled > 0 || sum.Trials.Cancelled > 0:
		return Interrupted
	case sum.Passed < sum.Total || len(sum.Missed) > 0 || sum.Waiting() > 0:
		return Failed
	case sum.Triggers != nil && sum.Triggers.Timeouts > 0:
		return Failed // no metric counts them
	case sum.Total == 0 && (sum.Triggers == nil || !sum.Triggers.Measured):
		return Failed
	}
	return Passed
}

// besideErrors reports errors beside the tasks of the suite: in their baselines,
// or in trigger tests.
func besideErrors(sum *runner.Summary) bool {
	return sum.Baseline != nil && sum.Baseline.Errors > 0 || sum.Triggers != nil && sum.Triggers.Errors > 0
}
