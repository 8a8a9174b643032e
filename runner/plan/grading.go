package plan

import (
	"context"
	"errors"

	"waza/eval"
	"waza/runner/grader/judge"
	"waza/runner/record"
)

// Grading returns a plan of the suite for grading a recorded run. The plan cannot be run.
func (r *Planner) Grading(suite *eval.Suite, rec *record.Run) (*Plan, error) {
	req := record.Request{Executor: rec.Config.Executor, Workers: rec.Config.ActualWorkers, FirstTool: rec.Asked.FirstTool}
	req.Model, req.Models = rec.Asked.Model, rec.Asked.Models
	if rec.Matrix() {
		req.Executor = rec.Asked.Executor
	}
	if rec.Imported != nil { // by an executor that may not exist here
		req.Executor = ""
	}
	d, err := r.draft(suite, req)
	if err != nil {
		return nil, err
	}
	d.waits = d.kind.WaitsForAgent || rec.Fleet != ""
	d.req.Workers = d.graderWorkers(req.Workers)
	d.configure()
	d.Config.TimeoutSeconds = max(d.Config.TimeoutSeconds, rec.Config.TimeoutSeconds)
	if rec.Matrix() {
		d.judge, d.ownJudge = d.defaultJudge()
		if err := d.planCells(); err != nil {
			return nil, err
		}
	} else {
		if d.judge, d.ownJudge = d.defaultJudge(); rec.Config.Model != "" {
			d.judge, d.ownJudge = rec.Config.Model, false
		}
		d.Config.Model, d.Config.Models = rec.Config.Model, nil
		d.cells = []*Setup{d.setup(d.kind, suite.ExecutorOptions[d.kind.Name], rec.Config.Model)}
	}
	_ = d.skipCells()                  // recorded trials are graded whatever context windows are known today
	var nothing *record.SelectionError // the plan may have nothing to run although the run executed trials
	if rec.Baseline != nil {
		d.against = rec.Baseline.Against
	}
	if err := d.planTasks(context.Background(), nil); err != nil && !errors.As(err, &nothing) {
		return nil, err
	}
	return d.finish(d.Config.ActualWorkers, true), nil
}

// Proposer returns the asker of the model that proposes system prompts.
func (p *Plan) Proposer() (*judge.Asker, error) {
	return judge.NewAsker(p.env, p.Suite.Config.PromptTune.Model)
}
