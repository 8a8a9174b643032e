package rpc

import (
	"context"
	"errors"

	"waza/rpc/internal/dispatch"
	"waza/rpc/internal/wire"
	"waza/runner"
	"waza/runner/plan"
	"waza/runner/record"
)

func resumeMethods() []*method {
	return []*method{
		dispatch.Define("run.resume", dispatch.Heavy,
			"Resume a run that was interrupted, cancelled or failed, or that has trials in error, with its original options and the current suite. "+
				"Trials that passed, failed, timed out or wait for a person's score are kept unless their task changed. All "+
				"other trials run, and the run then ends as if it had never been interrupted. "+
				"The run keeps its id, and the numbers of its events continue. The reply comes before every new "+
				"notification of the run, of which the event run_resumed is the first. The client receives them up to "+
				"eval.complete, and owns the run as if it had started it. "+
				"Resuming an active run of any process, or a run that has nothing left to run, is an error.", resumeRun),
	}
}

type resumeParams struct {
	RunID  string      `json:"runId" jsonschema:"required" doc:"Id of the run."`
	Params paramValues `json:"params" doc:"Values of parameters of the suite that replace those of the run, as in eval.run. Secret values, which are not recorded, are required."`
}

func resumeRun(ctx context.Context, c *call, p *resumeParams) (*runStarted, error) {
	h, err := c.find(p.RunID)
	if err != nil {
		return nil, err
	}
	if err := checkParams(p.Params); err != nil {
		return nil, err
	}
	rec := h.Record()
	req, err := plan.AskedAgain(rec, p.Params)
	if err != nil {
		return nil, paramsFault(err)
	}
	ready, err := prepare(ctx, c, rec.Suite.Path, req, nil)
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
	return &runStarted{RunID: run.ID(), Status: record.StatusRunning, Diagnostics: ready.Lacking, Damage: run.EarlierDamage()}, nil
}

// paramsFault explains which parameters a request must contain, because the record of the run lacks their values.
func paramsFault(err error) error {
	if lacks := (*plan.SecretParamsError)(nil); errors.As(err, &lacks) {
		return dispatch.WrongParam("params", map[string]any{"runId": lacks.RunID, "missing": lacks.Names}, ": %v", err)
	}
	return err
}

// resumeFault adds the id of the run to the error that nothing is left to run.
func resumeFault(id string, err error) error {
	var nothing *runner.NothingLeftError
	if !errors.As(err, &nothing) {
		return err
	}
	return dispatch.NewFault(wire.CodeRunFailed, nothing.Error(),
		map[string]any{"reason": nothing.Error(), "runId": id, "status": nothing.Status})
}
