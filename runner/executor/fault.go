package executor

import "errors"

// FailedError is an error of [Executor.Execute] that is the agent's own: the agent
// could not do the task. The verdict is failed, and nothing is graded.
type FailedError struct{ Why string }

func (e *FailedError) Error() string { return e.Why }

// AgainError is an error of [Executor.Execute] that says nothing of the agent's work:
// the agent left, or turned the trial away before it began. The trial is admitted
// again under the same number of attempt, and all the time of its deadline is there
// again.
type AgainError struct{ Why string }

func (e *AgainError) Error() string { return e.Why }

// AsAgain returns the AgainError in err; nil when there is none.
func AsAgain(err error) *AgainError {
	var again *AgainError
	if errors.As(err, &again) {
		return again
	}
	return nil
}
