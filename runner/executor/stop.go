package executor

import (
	"errors"
	"fmt"

	"waza/runner/provider"
)

// StopError means that every further trial would fail in the same way, so the run stops.
// Examples are a rejected key and an exhausted budget.
type StopError struct {
	Err error
	// Orderly means that running trials can finish and no more are started. Otherwise all trials
	// end at once and the run fails.
	Orderly bool
}

func (e *StopError) Error() string { return e.Err.Error() }
func (e *StopError) Unwrap() error { return e.Err }

// AsStop returns the [StopError] in err, or nil.
func AsStop(err error) *StopError {
	s, _ := errors.AsType[*StopError](err)
	return s
}

// ProviderFault converts an error of package provider to its meaning for a trial: a [StopError],
// a timeout, a [Permanent] error, or an error worth a retry. It returns other errors unchanged.
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
