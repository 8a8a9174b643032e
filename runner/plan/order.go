package plan

import (
	"waza/runner/record"
	"waza/runner/trial"
)

// Order returns the common part of the orders of a task's trials in a run. taskNum is the task's
// number there, from 1. The caller sets Num, Hash and Baseline of [record.Order] in a copy for
// each trial.
func (p *Plan) Order(t *Task, runID string, taskNum int) record.Order {
	c := &p.Config
	return record.Order{
		RunID: runID, TaskID: t.ID, TaskNum: taskNum, Role: t.Role, Trigger: t.Trigger,
		Suite: p.Suite, Task: t.Task, Fixtures: t.fixtures, Inputs: t.inputs, GraderFiles: t.graderFiles, Repos: t.repos,
		Executor: t.Setup.Executor.Name, Options: t.Setup.Settings.Options, Model: t.Setup.Settings.Model, Params: t.Setup.params,
		Judge: p.judge, Workers: c.ActualWorkers, Timeout: t.Timeout, TimeoutAsked: t.timeoutAsked,
		MaxAttempts: c.MaxAttempts, RetryErrors: c.RetryErrors,
		Against: p.against,
		Needs:   p.needs.of(t),
	}
}

// Env returns the environment that this process provides for the plan's trials. The caller sets
// the workspace directory and the event handlers, and closes the environment before the plan.
func (p *Plan) Env() *trial.Env {
	return &trial.Env{Executors: p.executors, Graders: p.graders, Grading: p.env, Pool: p.Pool}
}
