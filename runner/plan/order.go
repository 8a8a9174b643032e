package plan

import (
	"os"
	"slices"

	"waza/eval"
	"waza/eval/reach"
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
		Judge: p.judge, Workers: c.ActualWorkers, Timeout: t.Timeout, TimeoutAsked: t.timeoutAsked, MaxAttempts: c.MaxAttempts, RetryErrors: c.RetryErrors,
		Needs: p.taskNeeds(t),
	}
}

// Env returns the environment that this process provides for the plan's trials. The caller sets
// the workspace directory and the event handlers, and closes the environment before the plan.
func (p *Plan) Env() *trial.Env {
	return &trial.Env{Executors: p.executors, Graders: p.graders, Grading: p.env, Pool: p.Pool}
}

// graderFilesOf returns the hashes of the contents of the files below the suite's root that the
// graders of a task name, by path. It returns nil if hooks can write them before the first task.
func (d *Digests) graderFilesOf(s *eval.Suite, t *eval.Task) (map[string]string, error) {
	if len(s.Hooks.BeforeRun) > 0 {
		return nil, nil
	}
	sums := map[string]string{}
	lists := [][]*eval.Grader{t.Effective}
	for _, c := range t.Inputs.Checkpoints {
		lists = append(lists, c.Graders)
	}
	for _, g := range slices.Concat(lists...) {
		for _, path := range d.refers(g.Options, s, t) {
			if !reach.Within(s.Root(), path) {
				continue // another machine can have another version
			}
			sum, err := d.File(path)
			if err != nil {
				return nil, err
			}
			sums[path] = sum
		}
	}
	return sums, nil
}

// fixturesOf returns the hashes of the contents of a task's fixtures, by path. It returns nil if
// hooks can write them.
func (d *Digests) fixturesOf(s *eval.Suite, t *eval.Task) (map[string]string, error) {
	if writesBefore(s) {
		return nil, nil
	}
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

func writesBefore(s *eval.Suite) bool { return len(s.Hooks.BeforeRun)+len(s.Hooks.BeforeTask) > 0 }

// Limits of the files that waza reads again before each trial, see [Digests.inputsOf].
const (
	maxInputs     = 500
	maxInputBytes = 1 << 20
)

// inputsOf returns the hashes of the contents of the files below the suite's root that an
// executor reads for a task, by path: its program, instructions and skills. It leaves out large
// files and those beyond a number. It returns nil if hooks can write them. [Digests.execution]
// must have read the skills.
func (d *Digests) inputsOf(s *eval.Suite, t *eval.Task, options any) (map[string]string, error) {
	if writesBefore(s) {
		return nil, nil
	}
	paths := slices.Clone(d.refers(options, s, nil))
	for _, f := range slices.Concat(s.Instructions, t.Instructions) {
		if f.Path != "" {
			paths = append(paths, f.Path)
		}
	}
	for _, dir := range t.Skills {
		paths = append(paths, d.skillFiles[dir]...)
	}
	sums := map[string]string{}
	for _, path := range paths {
		info, err := os.Stat(path)
		if len(sums) == maxInputs || err != nil || info.Size() > maxInputBytes || !reach.Within(s.Root(), path) {
			continue
		}
		sum, err := d.File(path)
		if err != nil {
			return nil, err
		}
		sums[path] = sum
	}
	return sums, nil
}
