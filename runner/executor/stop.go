package executor

import (
	"context"
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

// EndError is the cause of a context that waza ends because it needs nothing more of the agent: it grades
// what the agent did until then. It is no fault.
type EndError struct {
	Reason string
	// Decided means that nothing the agent could still do changes its verdict. An executor can keep an
	// agent that stops when it is asked to, for other trials.
	Decided bool
}

func (e *EndError) Error() string { return e.Reason }

// Ended returns why waza needs nothing more of an agent whose context is ctx; ok is false if it does.
func Ended(ctx context.Context) (end *EndError, ok bool) {
	return errors.AsType[*EndError](context.Cause(ctx))
}

// Decided reports whether a context ended because the verdict of the agent is decided, see [EndError].
func Decided(ctx context.Context) bool {
	end, ok := Ended(ctx)
	return ok && end.Decided
}

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
