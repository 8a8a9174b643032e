package rpc

import (
	"context"
	"errors"

	"waza/eval"
	"waza/eval/decode"
	"waza/rpc/dispatch"
	"waza/rpc/wire"
	"waza/runner"
	"waza/runner/record"
	"waza/runner/regrade"
)

func gradeMethods() []*method {
	return []*method{
		dispatch.Define("run.grade", dispatch.Long,
			"Score the recorded trials of a run that is over with today's graders, and record what has changed. Nothing is executed, and models are asked only where a judge would be asked something else than before. "+
				"The reply comes when all is done; `$/cancelRequest` ends it, and what was done until then stays. Nobody is notified: run.status, run.list and run.result tell how the run stands.", gradeRun),
	}
}

type gradeParams struct {
	RunID   string `json:"runId" jsonschema:"required" doc:"Id of the run."`
	Path    string `json:"path" doc:"Suite file to take graders, thresholds and metrics from, or a directory that holds one suite; the run's own suite file when absent."`
	Rejudge bool   `json:"rejudge" doc:"Ask models also where they were asked the same before."`
}

type runGraded struct {
	RunID        string           `json:"runId"`
	Status       record.Status    `json:"status" doc:"That of the run, as it was."`
	Graded       int              `json:"graded" doc:"Trials that were graded."`
	Kept         int              `json:"kept" doc:"Trials that stay as they are: their executor did not end normally, or their task is no longer in the suite."`
	Changed      []regrade.Change `json:"changed" doc:"Trials whose verdict or score is another now, in the order of the suite; 1000 at most."`
	TotalChanged int              `json:"totalChanged" doc:"How many there are."`
	Summary      *record.Summary  `json:"summary" doc:"The summary of the run now; null where a run that did not complete was never graded anew."`
	// Warnings and Diagnostics are only there when there is something to tell.
	Warnings    []string           `json:"warnings,omitempty" doc:"How suite and run differ; absent when in nothing that matters."`
	Diagnostics decode.Diagnostics `json:"diagnostics,omitempty" doc:"What this machine lacks for the graders; absent when nothing."`
}

// maxChanges bounds the changes of one reply.
const maxChanges = 1000

func gradeRun(ctx context.Context, c *call, p *gradeParams) (*runGraded, error) {
	h, err := find(c, p.RunID)
	if err != nil {
		return nil, err
	}
	suite, err := suiteOf(ctx, c, h.Record(), p.Path)
	if err != nil {
		return nil, err
	}
	g, err := c.server.runner.Amender().Grade(ctx, h.ID(), suite, regrade.GradeOptions{Rejudge: p.Rejudge})
	if err != nil {
		return nil, gradeFault(ctx, h.ID(), suite.File, g, err)
	}
	r := &runGraded{
		RunID: h.ID(), Status: g.Status, Graded: g.Graded, Kept: g.Kept, Changed: g.Changes[:min(len(g.Changes), maxChanges)],
		TotalChanged: g.Changed, Summary: g.Summary, Warnings: g.Warnings, Diagnostics: g.Diagnostics,
	}
	if r.Changed == nil {
		r.Changed = []regrade.Change{}
	}
	return r, nil
}

// suiteOf reads the suite that a run is graded with: for the run's executor, agent
// and fixtures. It takes one of the slots of heavy requests, which the grading, that
// may take hours, does not.
func suiteOf(ctx context.Context, c *call, rec *record.Run, path string) (*eval.Suite, error) {
	release, err := c.server.dispatcher.Turn(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if path == "" {
		path = rec.Suite.Path
	}
	executor, agent := rec.Overrides()
	return loadValid(ctx, c, path, loadOptions{executor: executor, agent: agent, contextDir: rec.Config.ContextDir})
}

// gradeFault says why a run was not graded, or not to the end.
func gradeFault(ctx context.Context, id, path string, g *regrade.Grading, err error) error {
	var (
		busy       *record.BusyError
		ungradable *regrade.UngradableError
		unknown    *record.UnknownExecutorError
	)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &ungradable):
		return &dispatch.InvalidSuiteError{Path: path, Diagnostics: ungradable.Diagnostics}
	case errors.As(err, &busy), errors.As(err, &unknown), errors.Is(err, record.ErrRunNotFound), errors.Is(err, runner.ErrClosed):
		return err
	}
	data := map[string]any{"reason": err.Error(), "runId": id}
	if g != nil {
		data["graded"], data["changed"] = g.Graded, g.Changed
	}
	return dispatch.NewFault(wire.CodeRunFailed, err.Error(), data)
}
