package rpc

import (
	"context"
	"errors"

	"waza/rpc/dispatch"
	"waza/rpc/wire"
	"waza/runner"
	"waza/runner/record"
)

func resumeMethods() []*method {
	return []*method{
		dispatch.Define("run.resume", dispatch.Heavy,
			"Take a run up again that was interrupted, cancelled or failed, or that has trials in error: as it was asked for, by its suite as that is now. "+
				"Trials that passed, failed, took too long or wait for a person are kept as long as their task is what it was; all others are done, and the run ends as if it had never been cut short. "+
				"It keeps its id and its events go on counting. The reply comes before every new notification of the run, the first of which is the event run_resumed; the client receives them up to eval.complete, and owns the run as if it had started it. "+
				"A run that goes on, in whatever process, is an error, as is one that has nothing left to run.", resumeRun),
	}
}

func resumeRun(ctx context.Context, c *call, p *runParams) (*runStarted, error) {
	h, err := find(c, p.RunID)
	if err != nil {
		return nil, err
	}
	rec := h.Record()
	asked := rec.Asked
	ready, err := prepare(ctx, c, rec.Suite.Path, asked, nil)
	if err != nil {
		return nil, err
	}
	run, err := c.conn.runner.Resume(ctx, rec.RunID, ready.Plan)
	switch {
	case errors.Is(err, context.Canceled):
		return nil, err
	case err != nil:
		return nil, resumeFault(rec.RunID, &dispatch.RunFailedError{Err: err})
	}
	c.conn.runs.add(run)
	c.conn.subscriptions.followOn(run, c.Replied())
	c.server.announce(run)
	return &runStarted{RunID: run.ID(), Status: record.StatusRunning, Diagnostics: ready.Lacking}, nil
}

// resumeFault says of which run it is that it has nothing left to run.
func resumeFault(id string, err error) error {
	var nothing *runner.NothingLeftError
	if !errors.As(err, &nothing) {
		return err
	}
	return dispatch.NewFault(wire.CodeRunFailed, nothing.Error(), map[string]any{"reason": nothing.Error(), "runId": id, "status": nothing.Status})
}
