package runner

import (
	"context"
	"errors"

	"waza/runner/trial"
)

// errNoFleet reports that the runner cannot let a fleet execute trials.
var errNoFleet = errors.New("a fleet is not supported: this program executes all trials itself")

// openFleet prepares the trials of the run for execution by the workers of a fleet.
func (s *scheduler) openFleet(ctx context.Context) (err error) {
	r := s.run
	if r.runner.fleet == nil {
		return errNoFleet
	}
	a := &trial.FleetRun{
		RunID: r.ID(), Address: *r.plan.Fleet, Suite: r.plan.Suite, Files: r.plan.Files.Files, State: r.runner.store.Dir(),
		Trials: r.plan.TotalTrials(), AtOnce: r.plan.Config.ActualWorkers, Resumed: r.earlier != nil, Logf: r.logf,
	}
	for _, t := range s.tasks {
		o := t.order // the parameters that a model proposes are set later
		a.Orders = append(a.Orders, &o)
	}
	s.fleet, err = r.runner.fleet.Open(ctx, a)
	return err
}

// forgetFleet removes the orders and results that a killed process left of a resumed run that has
// no trial to execute.
func (r *Run) forgetFleet() {
	if r.earlier == nil || r.plan.Fleet == nil || r.runner.fleet == nil {
		return
	}
	if err := r.runner.fleet.Forget(r.ctx, *r.plan.Fleet, r.ID()); err != nil {
		r.logf("warning", "%v", err)
	}
}
