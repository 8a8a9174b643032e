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
	g, err := c.conn.runner.Amender().Grade(ctx, h.ID(), suite, regrade.GradeOptions{Rejudge: p.Rejudge})
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

func reviewMethods() []*method {
	return []*method{
		dispatch.Define("run.review", dispatch.Heavy,
			"Record a person's score of a trial of a run that is over, for a grader of type human or human_calibration. "+
				"The verdict of the trial and the run's summary follow it at once; there is no notification of it. It may be given again: the last one counts.", reviewTrial),
		dispatch.Define("run.pending", dispatch.Heavy, "List the scores that a run waits for.", listPending),
	}
}

type reviewParams struct {
	RunID    string  `json:"runId" jsonschema:"required" doc:"Id of the run."`
	TaskID   string  `json:"taskId" jsonschema:"required" doc:"Id of the task."`
	Trial    int     `json:"trial" alias:"trialNum" jsonschema:"required,minimum=1" doc:"Number of the trial in its task, from 1."`
	Grader   string  `json:"grader" doc:"Name of the grader that asks; may be absent where only one does."`
	Score    float64 `json:"score" jsonschema:"required,minimum=0,maximum=1" doc:"The score, 0 to 1. Whether it passes, the grader's threshold says."`
	Comment  string  `json:"comment" doc:"Why; becomes the feedback of the grader."`
	Reviewer string  `json:"reviewer" doc:"Who gives the score."`
}

func reviewTrial(ctx context.Context, c *call, p *reviewParams) (*regrade.Reviewed, error) {
	if _, err := find(c, p.RunID); err != nil {
		return nil, err
	}
	return c.conn.runner.Amender().Review(ctx, p.RunID, regrade.Review{
		TaskID: p.TaskID, Trial: p.Trial, Grader: p.Grader, Score: p.Score, Comment: p.Comment, Reviewer: p.Reviewer,
	})
}

type pendingParams struct {
	RunID string `json:"runId" jsonschema:"required" doc:"Id of the run."`
	All   bool   `json:"all" doc:"List also what has its score, and what could change nothing because the trial failed anyway or is an error."`
	Limit int    `json:"limit" jsonschema:"minimum=1,maximum=10000" doc:"Most to list; 1000 when absent."`
}

type pendingResult struct {
	RunID string             `json:"runId"`
	Total int                `json:"total" doc:"How many there are, also those beyond the limit."`
	List  []regrade.Question `json:"pending" doc:"In the order of tasks, trials and graders."`
}

func listPending(ctx context.Context, c *call, p *pendingParams) (*pendingResult, error) {
	if _, err := find(c, p.RunID); err != nil {
		return nil, err
	}
	ask, limit := c.conn.runner.Amender().Pending, 1000
	if p.All {
		ask = c.conn.runner.Amender().Questions
	}
	if p.Limit > 0 {
		limit = p.Limit
	}
	list, err := ask(p.RunID)
	if err != nil {
		return nil, err
	}
	r := &pendingResult{RunID: p.RunID, Total: len(list), List: []regrade.Question{}}
	r.List = append(r.List, list[:min(limit, len(list))]...)
	return r, ctx.Err()
}
