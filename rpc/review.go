package rpc

import (
	"context"

	"waza/eval/decode"
	"waza/rpc/wire"
	"waza/runner"
)

func reviewMethods() []*method {
	return []*method{
		define("run.review", heavy,
			"Record a person's score of a trial of a run that is over, for a grader of type human or human_calibration. "+
				"The verdict of the trial and the run's summary follow it at once; no notification tells of it. It may be given again: the last one counts.", (*call).runReview),
		define("run.pending", heavy, "List the scores that a run waits for.", (*call).runPending),
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

func (c *call) runReview(ctx context.Context, p *reviewParams) (*runner.Reviewed, error) {
	if _, err := c.find(p.RunID); err != nil {
		return nil, err
	}
	return c.server.runner.Amender().Review(ctx, p.RunID, runner.Review{
		TaskID: p.TaskID, Trial: p.Trial, Grader: p.Grader, Score: p.Score, Comment: p.Comment, Reviewer: p.Reviewer,
	})
}

type pendingParams struct {
	RunID string `json:"runId" jsonschema:"required" doc:"Id of the run."`
	All   bool   `json:"all" doc:"List also what has its score, and what could change nothing because the trial failed anyway or is an error."`
	Limit int    `json:"limit" jsonschema:"minimum=1,maximum=10000" doc:"Most to list; 1000 when absent."`
}

type pendingResult struct {
	RunID string            `json:"runId"`
	Total int               `json:"total" doc:"How many there are, also those beyond the limit."`
	List  []runner.Question `json:"pending" doc:"In the order of tasks, trials and graders."`
}

func (c *call) runPending(ctx context.Context, p *pendingParams) (*pendingResult, error) {
	if _, err := c.find(p.RunID); err != nil {
		return nil, err
	}
	ask, limit := c.server.runner.Amender().Pending, 1000
	if p.All {
		ask = c.server.runner.Amender().Questions
	}
	if p.Limit > 0 {
		limit = p.Limit
	}
	list, err := ask(p.RunID)
	if err != nil {
		return nil, err
	}
	r := &pendingResult{RunID: p.RunID, Total: len(list), List: []runner.Question{}}
	r.List = append(r.List, list[:min(limit, len(list))]...)
	return r, ctx.Err()
}

// reviewFault tells what a review names that is not there.
func reviewFault(e *runner.ReviewError) *wire.Error {
	data := map[string]any{
		"reason": e.Error(), "runId": e.RunID, "known": some(e.Known), "suggestion": decode.Nearest(e.Given, e.Known),
	}
	if e.What == "task" {
		data["taskId"] = clip(e.Given)
		return newFault(wire.CodeTaskNotFound, "", compact(data))
	}
	data["parameter"] = e.What
	return newFault(wire.CodeInvalidParams, e.Error(), compact(data))
}

// busyFault says that the record of a run cannot be changed now: not before it is
// over, or not before somebody else has done so.
func busyFault(e *runner.BusyError) *wire.Error {
	if e.GoesOn {
		data := map[string]any{"reason": e.Error(), "runId": e.RunID}
		if e.PID != 0 {
			data["pid"] = e.PID
		}
		return newFault(wire.CodeRunFailed, e.Error(), data)
	}
	return newFault(wire.CodeBusy, e.Error(), map[string]any{"reason": e.Error(), "runId": e.RunID, "limit": "changes of a run's record at once", "value": 1})
}
