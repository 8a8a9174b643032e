package executor

import (
	"errors"
	"fmt"

	"waza/runner/provider"
)

// StopError says that no further trial will fare better, so that the run should
// stop instead of failing each: a key that is refused, a budget that is used up.
type StopError struct {
	Err error
	// Orderly: trials that are under way may end; no more are started. If
	// not, all ends at once and the run has failed.
	Orderly bool
}

func (e *StopError) Error() string { return e.Err.Error() }
func (e *StopError) Unwrap() error { return e.Err }

// AsStop returns the [StopError] that err is or wraps, or nil.
func AsStop(err error) *StopError {
	var s *StopError
	if errors.As(err, &s) {
		return s
	}
	return nil
}

// ProviderFault says of an error of package provider what it means for a trial:
// a [StopError], a timeout, an error that another try would meet again, or one
// that it may not. Other errors are returned as they are.
func ProviderFault(err error) error {
	switch provider.KindOf(err) {
	case provider.Refused:
		return &StopError{Err: err}
	case provider.OverBudget:
		return &StopError{Err: err, Orderly: true}
	case provider.Silent:
		return fmt.Errorf("%w: %w", ErrTimeout, err)
	case provider.Invalid:
		return Permanent(err)
	}
	return err
}
