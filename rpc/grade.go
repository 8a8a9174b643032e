package rpc

import (
	"cmp"
	"context"
	"errors"

	"waza/eval"
	"waza/eval/decode"
	"waza/rpc/internal/dispatch"
	"waza/rpc/internal/wire"
	"waza/runner"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/regrade"
)

func gradeMethods() []*method {
	return []*method{
		dispatch.Define("run.grade", dispatch.Long,
			"Grade the recorded trials of a run that is over with today's graders, and record the changes. Nothing is "+
				"executed, and a model is asked only if its judge prompt changed. "+
				"The reply comes when all trials are graded. `$/cancelRequest` stops the grading; completed changes stay. "+
				"There are no notifications: run.status, run.list and run.result return the new results.",
			gradeRun),
	}
}

type gradeParams struct {
	RunID   string `json:"runId" jsonschema:"required" doc:"Id of the run."`
	Path    string `json:"path" doc:"Suite file, or a directory that holds one suite, with the graders, thresholds and metrics to use; the run's own suite file when absent."`
	Rejudge bool   `json:"rejudge" doc:"Ask models again even if they were asked the same before."`

	JudgeModel string      `json:"judge_model" doc:"Judge model to use instead of the suite's, for graders that ask a model and name none."`
	JudgeAgent string      `json:"judge_agent" doc:"Agent to use as the judge instead of the suite's judge."`
	ExactTools bool        `json:"exact_tools" doc:"Match names of tools in graders only against the agent's own names."`
	Params     paramValues `json:"params" doc:"Values of parameters of the suite that replace those of the run, as in eval.run. Secret values, which are not recorded, are required."`
}

type runGraded struct {
	RunID        string             `json:"runId"`
	Status       record.Status      `json:"status" doc:"Status of the run, which does not change."`
	Graded       int                `json:"graded" doc:"Number of trials that were graded."`
	Kept         int                `json:"kept" doc:"Number of trials that were not graded: their executor did not end normally, or their task is no longer in the suite."`
	Changed      []regrade.Change   `json:"changed" doc:"Trials whose verdict or score changed, in the order of the suite; at most 1000."`
	TotalChanged int                `json:"totalChanged" doc:"Number of all trials that changed."`
	Summary      *record.Summary    `json:"summary" doc:"The new summary of the run; null if the run did not complete and was never graded again."`
	Damage       *record.Damage     `json:"damage,omitempty" doc:"Damage of the run's record, whose lost trials were not graded; absent when the record is complete."`
	Warnings     []string           `json:"warnings,omitempty" doc:"Differences between suite and run that matter; absent if empty."`
	Diagnostics  decode.Diagnostics `json:"diagnostics,omitempty" doc:"Requirements of the graders that this machine lacks; absent if it lacks none."`
}

// maxChanges limits the changes in one reply.
const maxChanges = 1000

func gradeRun(ctx context.Context, c *call, p *gradeParams) (*runGraded, error) {
	h, err := c.find(p.RunID)
	if err != nil {
		return nil, err
	}
	suite, err := suiteOf(ctx, c, h.Record(), p)
	if err != nil {
		return nil, err
	}
	damage, err := h.Damage()
	if err != nil {
		return nil, err
	}
	g, err := c.conn.runner.Amender().Grade(ctx, h.ID(), suite, regrade.GradeOptions{Rejudge: p.Rejudge})
	if err != nil {
		return nil, gradeFault(ctx, h.ID(), suite.File, g, err)
	}
	return &runGraded{
		RunID: h.ID(), Status: g.Status, Graded: g.Graded, Kept: g.Kept, Changed: orEmpty(g.Changes[:min(len(g.Changes), maxChanges)]),
		TotalChanged: g.Changed, Summary: g.Summary, Damage: damage, Warnings: g.Warnings, Diagnostics: g.Diagnostics,
	}, nil
}

// suiteOf loads the suite for grading a run, with the run's executor, agent and fixtures. It
// uses one of the slots of heavy requests. The grading itself does not, because it can take
// hours.
func suiteOf(ctx context.Context, c *call, rec *record.Run, p *gradeParams) (*eval.Suite, error) {
	release, err := c.server.dispatcher.Turn(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	asked, err := plan.AskedAgain(rec, p.Params)
	if err != nil {
		return nil, paramsFault(err)
	}
	path := cmp.Or(p.Path, rec.Suite.Path)
	executor, agent := rec.Overrides()
	return loadBy(ctx, c, path, eval.Options{
		Executor: executor, Agent: agent, Recorded: rec.Asked.Executor+rec.Asked.Agent == "", ContextDir: rec.Config.ContextDir,
		JudgeModel: cmp.Or(p.JudgeModel, rec.Asked.JudgeModel), JudgeAgent: cmp.Or(p.JudgeAgent, rec.Asked.JudgeAgent),
		Baseline: rec.Asked.Baseline, NoSkills: rec.Asked.NoSkills, ExactTools: p.ExactTools || rec.Asked.ExactTools, PassReward: rec.Asked.PassReward,
		Params: asked.Params, SecretParams: asked.SecretParams,
	}, c.conn.runner.Planner().Load)
}

// gradeFault explains why a run was not graded, or only in part.
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
			"Record a person's score for a trial of a run that is over, for a grader of type human or human_calibration. "+
				"The score updates the trial's verdict and the run's summary at once, without a notification. A trial can "+
				"be scored several times: the last score counts.",
			reviewTrial),
		dispatch.Define("run.pending", dispatch.Heavy, "List the scores that a run still needs from people.", listPending),
	}
}

type reviewParams struct {
	RunID    string  `json:"runId" jsonschema:"required" doc:"Id of the run."`
	TaskID   string  `json:"taskId" jsonschema:"required" doc:"Id of the task."`
	Trial    int     `json:"trial" alias:"trialNum" jsonschema:"required,minimum=1" doc:"Number of the trial in its task, from 1."`
	Grader   string  `json:"grader" doc:"Name of the grader; can be absent if only one grader asks for a score."`
	Score    float64 `json:"score" jsonschema:"required,minimum=0,maximum=1" doc:"The score, 0 to 1. The grader's threshold decides whether it passes."`
	Comment  string  `json:"comment" doc:"Reason for the score; becomes the feedback of the grader."`
	Reviewer string  `json:"reviewer" doc:"Name of the person who gives the score."`
}

func reviewTrial(ctx context.Context, c *call, p *reviewParams) (*regrade.Reviewed, error) {
	if _, err := c.find(p.RunID); err != nil {
		return nil, err
	}
	return c.conn.runner.Amender().Review(ctx, p.RunID, regrade.Review{
		TaskID: p.TaskID, Trial: p.Trial, Grader: p.Grader, Score: p.Score, Comment: p.Comment, Reviewer: p.Reviewer,
	})
}

type pendingParams struct {
	RunID string `json:"runId" jsonschema:"required" doc:"Id of the run."`
	All   bool   `json:"all" doc:"Also list scores that were given, and those that could not change anything because the trial failed anyway or is an error."`
	Limit int    `json:"limit" jsonschema:"minimum=1,maximum=10000" doc:"Maximum number of scores; 1000 when absent."`
}

type pendingResult struct {
	RunID  string             `json:"runId"`
	Damage *record.Damage     `json:"damage,omitempty" doc:"Damage of the run's record, whose lost trials are not listed; absent when the record is complete."`
	Total  int                `json:"total" doc:"Number of all scores, including those beyond the limit."`
	List   []regrade.Question `json:"pending" doc:"The scores, in the order of tasks, trials and graders."`
}

func listPending(ctx context.Context, c *call, p *pendingParams) (*pendingResult, error) {
	h, err := c.find(p.RunID)
	if err != nil {
		return nil, err
	}
	damage, err := h.Damage()
	if err != nil {
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
	r := &pendingResult{RunID: p.RunID, Damage: damage, Total: len(list), List: []regrade.Question{}}
	r.List = append(r.List, list[:min(limit, len(list))]...)
	return r, ctx.Err()
}
