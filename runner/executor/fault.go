package executor

import "errors"

// ErrNoServer means that no waza server of this state directory is running, so that agents that
// connect to one cannot be reached.
var ErrNoServer = errors.New("no waza server is running: start one with waza serve")

// FailedError is returned by [Executor.Execute] if the agent itself could not do the task. The
// verdict is failed, and nothing is graded.
type FailedError struct{ Reason string }

func (e *FailedError) Error() string { return e.Reason }

// RetryError is returned by [Executor.Execute] if the agent left, or rejected the trial before
// it started. It does not reflect on the agent's work. The trial is admitted again with the same
// attempt number. Its deadline counts from its first request.
type RetryError struct{ Reason string }

func (e *RetryError) Error() string { return e.Reason }

// AsRetry returns the RetryError in err, or nil.
func AsRetry(err error) *RetryError {
	again, _ := errors.AsType[*RetryError](err)
	return again
}
