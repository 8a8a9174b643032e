package plan

import (
	"errors"

	"waza/eval"
	"waza/runner/executor/acp"
	"waza/runner/grader"
	"waza/runner/grader/judge"
	"waza/runner/provider"
	"waza/runner/record"
)

// Grading returns a plan of the suite for grading a recorded run. The plan cannot be run.
func (r *Planner) Grading(suite *eval.Suite, rec *record.Run) (*Plan, error) {
	req := record.Request{Executor: rec.Config.Executor, Workers: rec.Config.ActualWorkers}
	if rec.Matrix() {
		req.Executor, req.Model, req.Models = rec.Asked.Executor, rec.Asked.Model, rec.Asked.Models
	}
	if rec.Imported != nil { // by an executor that may not exist here
		req.Executor = ""
	}
	kind, err := r.executorKind(suite, req)
	if err != nil {
		return nil, err
	}
	waits := kind.WaitsForAgent || rec.Fleet != ""
	req.Workers = graderWorkers(waits, req.Workers)
	p := &Plan{
		Suite: suite, executors: r.executors, graders: r.graders, Config: planConfig(suite, req, kind, waits), Pool: provider.ForSuite(suite, r.limits),
	}
	p.Config.TimeoutSeconds = max(p.Config.TimeoutSeconds, rec.Config.TimeoutSeconds)
	if rec.Matrix() {
		p.judge = defaultJudge(&req, suite)
		err = p.planCells(r, kind, models(&req, suite))
	} else {
		p.judge = rec.Config.Model
		p.Config.Model, p.Config.Models = rec.Config.Model, nil
		p.cells = []*Setup{newSetup(p, kind, suite.ExecutorOptions[kind.Name], rec.Config.Model)}
	}
	if err != nil {
		return nil, err
	}
	_ = p.skipCells()                  // recorded trials are graded whatever context windows are known today
	var nothing *record.SelectionError // the plan may have nothing to run although the run executed trials
	if err := p.planTasks(req); err != nil && !errors.As(err, &nothing) {
		return nil, err
	}
	p.learnSecrets()
	p.env = &grader.Env{
		Suite: suite, Workers: p.Config.ActualWorkers, Providers: p.Pool, Executor: kind.Name, Model: p.judge, Agents: acp.Judges{}, Recorded: true,
	}
	return p, nil
}

// Proposer returns the asker of the model that proposes system prompts.
func (p *Plan) Proposer() (*judge.Asker, error) {
	return judge.NewAsker(p.env, p.Suite.Config.PromptTune.Model)
}
