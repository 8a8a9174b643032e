package doors

import (
	"context"

	"waza/rpc/internal/dispatch"
	"waza/runner/fleet/survey"
)

func fleetMethods() []*dispatch.Method[*Request] {
	return []*dispatch.Method[*Request]{
		dispatch.Define("fleet.get", dispatch.Heavy,
			"Report the state of this user's fleet: its workers, the waiting orders, and the runs they belong to. The "+
				"fleet is the one in the daemon's WAZA_FLEET, "+
				"or else the embedded one, if it was ever used. Users of /rpc who are neither the owner nor an admin get no fleet.", getFleet),
	}
}

type fleetReport struct {
	Known   bool           `json:"known" doc:"Whether there is a fleet."`
	Problem string         `json:"problem,omitempty" doc:"Why the fleet cannot be reached; absent if it can."`
	Fleet   *survey.Survey `json:"fleet,omitempty" doc:"The state of the fleet; absent without a fleet, or if it cannot be reached."`
}

func getFleet(ctx context.Context, r *Request, _ *noParams) (*fleetReport, error) {
	if r.o.Fleet == nil || r.o.Restricted {
		return &fleetReport{}, nil
	}
	s, err := r.o.Fleet.Survey(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return &fleetReport{Known: true, Problem: err.Error()}, nil
	}
	return &fleetReport{Known: s != nil, Fleet: s}, nil
}
