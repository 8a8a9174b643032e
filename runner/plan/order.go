package plan

import (
	"waza/eval"
	"waza/runner/record"
	"waza/runner/trial"
)

// Order returns what the trials of a task have in common, in a run and with the number
// that the task has there, from 1. [record.Order]'s Num, Hash and Baseline are those of
// one trial, and the caller's to set in a copy.
func (p *Plan) Order(t *Task, runID string, taskNum int) record.Order {
	c := &p.Config
	return record.Order{
		RunID: runID, TaskID: t.ID, TaskNum: taskNum, Role: t.Role, Trigger: t.Trigger,
		Suite: p.Suite, Task: t.Task, Fixtures: t.fixtures,
		Executor: t.Setup.Executor.Name, Options: t.Setup.Settings.Options, Model: t.Setup.Settings.Model, Params: t.Setup.params,
		Judge: p.judge, Workers: c.ActualWorkers, Timeout: t.Timeout, MaxAttempts: c.MaxAttempts, RetryErrors: c.RetryErrors,
	}
}

// Env returns what this process offers to the plan's trials. The caller adds where
// they work and whom they report to, and closes it before the plan.
func (p *Plan) Env() *trial.Env {
	return &trial.Env{Executors: p.executors, Graders: p.graders, Grading: p.env, Pool: p.Pool}
}

// fixturesOf are the hashes of the contents of a task's fixtures, by their paths.
func (d *Digests) fixturesOf(t *eval.Task) (map[string]string, error) {
	var sums map[string]string
	for _, f := range t.Inputs.Files {
		if f.Content != nil {
			continue
		}
		sum, err := d.File(f.Source)
		if err != nil {
			return nil, err
		}
		if sums == nil {
			sums = map[string]string{}
		}
		sums[f.Source] = sum
	}
	return sums, nil
}
