package rpc

import (
	"context"

	"waza/rpc/dispatch"
	"waza/runner/regrade"
)

func reviewMethods() []*method {
	return []*method{
		dispatch.Define("run.review", dispatch.Heavy,
			"Record a person's score of a trial of a run that is over, for a grader of type human or human_calibration. "+
				"The verdict of the trial and the run's summary follow it at once; no notification tells of it. It may be given again: the last one counts.", reviewTrial),
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
	return c.server.runner.Amender().Review(ctx, p.RunID, regrade.Review{
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
	r := &pendingResult{RunID: p.RunID, Total: len(list), List: []regrade.Question{}}
	r.List = append(r.List, list[:min(limit, len(list))]...)
	return r, ctx.Err()
}
