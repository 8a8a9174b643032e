package trial

import (
	"context"

	"waza/eval"
	"waza/runner/fleetaddr"
	"waza/runner/record"
)

// FleetBackend lets the workers of a fleet execute trials. It is safe for concurrent use.
type FleetBackend interface {
	// Open prepares the trials of a run. It returns when workers can start them, or an error
	// with the reason why they cannot. The caller closes the FleetTrials after the last trial.
	Open(ctx context.Context, a *FleetRun) (FleetTrials, error)
	// Forget ends what a killed owner left of a run whose trials have all been recorded. It
	// returns soon, with the reason if it could not.
	Forget(ctx context.Context, fleet fleetaddr.Address, runID string) error
}

// FleetRun is a run whose trials the workers of a fleet execute.
type FleetRun struct {
	RunID string
	// Address is the address of the fleet. Its files are absolute.
	Address fleetaddr.Address
	Suite   *eval.Suite
	// Orders are the orders of the tasks, in the order of the run. All fields are set except
	// Num, Hash and Baseline, and Params where a model proposes them.
	Orders []*record.Order
	// Files maps the absolute paths of all files that the plan depends on to the hashes of their
	// contents.
	Files map[string]string
	// State is the state directory, which is not transferred.
	State string
	// Trials is the number of trials. AtOnce is the number of trials that the caller requests in
	// parallel.
	Trials, AtOnce int
	// Resumed reports whether an earlier owner may have left orders and results.
	Resumed bool
	// Logf logs a message for the run's subscribers.
	Logf func(level, format string, args ...any)
}

// A FleetTrials executes the trials of one run. It is safe for concurrent use.
type FleetTrials interface {
	// Do executes a trial like [Do]. It calls Start of env.Owner, which is not nil, when
	// a worker has started the trial.
	Do(ctx context.Context, env *Env, o *record.Order) *record.Trial
	// Recorded reports that the result of an order is recorded on disk, so that no other copy is
	// needed. TaskNum, Num and Hash of the order are set.
	Recorded(o *record.Order)
	// Close ends the remaining work of the workers, whatever ended the run, and returns soon.
	Close() error
}
