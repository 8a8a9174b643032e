package rpc

import (
	"context"
	"errors"
	"time"

	"waza/rpc/internal/dispatch"
	"waza/rpc/internal/wire"
	"waza/runner/attack"
	"waza/runner/record"
)

func attackMethods() []*method {
	return []*method{
		dispatch.Define("eval.attack", dispatch.Long,
			"Test whether agents that do not do the tasks can pass a suite: one that does nothing, one that repeats its prompt, and "+
				"forgers. Another agent carries out the solution of each task, and should pass. They work on copies of the suite, and "+
				"no recorded run changes. The reply comes when all have ended; eval.attacked follows each trial before that. "+
				"`$/cancelRequest` ends the attack.",
			attackSuite),
	}
}

type evalAttackParams struct {
	Path           string        `json:"path" jsonschema:"required" doc:"Suite file, or a directory that holds one suite; a path or a file URI."`
	Tasks          []string      `json:"tasks" doc:"Attack only tasks whose id or name matches one of these globs."`
	Tags           []string      `json:"tags" doc:"Attack only tasks with a tag that matches one of these globs."`
	Agents         []string      `json:"agents" doc:"Names of the agents to run, see docs/attack.md; all when absent."`
	JudgeModel     string        `json:"judge_model" doc:"Judge model to use instead of the suite's, for graders that ask a model and name none."`
	JudgeAgent     string        `json:"judge_agent" doc:"Agent to use as the judge instead of the suite's judge."`
	ContextDir     string        `json:"context_dir" doc:"Fixture directory to use instead of every task's."`
	Sandbox        sandboxChange `json:"sandbox" doc:"Sandbox of the agents instead of the suite's, as in eval.run."`
	Params         paramValues   `json:"params" doc:"Values of the parameters of the suite, as in eval.run."`
	TimeoutSeconds float64       `json:"timeout_seconds" alias:"timeout" jsonschema:"minimum=0.001,maximum=31536000" doc:"Timeout of a trial in seconds, instead of the timeouts of suite and tasks."`
}

// attackedParams are the parameters of eval.attacked.
type attackedParams struct {
	Path   string         `json:"path" doc:"The path in the request."`
	Agent  string         `json:"agent" doc:"Name of the agent whose trial ended."`
	TaskID string         `json:"taskId"`
	Status record.Verdict `json:"status" doc:"Verdict of the trial; skipped if the agent has nothing to attack or to solve."`
	Done   int            `json:"done" doc:"Number of trials that have ended."`
	Total  int            `json:"total" doc:"Number of all trials."`
}

// maxAttacks limits the attacks of all clients at a time, because each occupies the machine.
const maxAttacks = 2

func attackSuite(ctx context.Context, c *call, p *evalAttackParams) (*attack.Report, error) {
	path, err := c.conn.resolve("path", p.Path)
	if err != nil {
		return nil, err
	}
	if err := checkParams(p.Params); err != nil {
		return nil, err
	}
	o := attack.Options{
		Path: path, Tasks: p.Tasks, Tags: p.Tags, Agents: p.Agents, JudgeModel: p.JudgeModel, JudgeAgent: p.JudgeAgent,
		Sandbox: string(p.Sandbox), Params: p.Params, Timeout: time.Duration(p.TimeoutSeconds * float64(time.Second)), Logger: c.server.log,
		Progress: func(a attack.Progress) {
			// A client that is gone needs no progress, and its context ends.
			_ = c.conn.stream.Notify(ctx, "eval.attacked", &attackedParams{p.Path, a.Agent, a.TaskID, a.Verdict, a.Done, a.Total})
		},
	}
	if p.ContextDir != "" {
		if o.ContextDir, err = c.conn.resolve("context_dir", p.ContextDir); err != nil {
			return nil, err
		}
	}
	if n := c.server.attacks.Add(1); n > maxAttacks {
		c.server.attacks.Add(-1)
		return nil, dispatch.NewFault(wire.CodeBusy, "", map[string]any{"limit": "attacks at a time", "value": maxAttacks})
	}
	defer c.server.attacks.Add(-1)
	report, err := attack.Run(ctx, o)
	if err != nil {
		return nil, attackFault(ctx, p.Path, path, err)
	}
	return report, nil
}

// attackFault explains why an attack has no report.
func attackFault(ctx context.Context, given, path string, err error) error {
	var (
		invalid   *attack.SuiteError
		unread    *attack.UnreadError
		unknown   *attack.AgentError
		kind      *attack.KindError
		selection *record.SelectionError
	)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &invalid):
		return &dispatch.InvalidSuiteError{Path: given, Diagnostics: invalid.Diagnostics}
	case errors.As(err, &unread):
		return &dispatch.SuiteError{Given: given, Path: path, Err: unread.Err}
	case errors.As(err, &unknown):
		return dispatch.WrongParam("agents", nil, ": %v", unknown)
	case errors.As(err, &kind):
		return dispatch.WrongParam("path", nil, ": %v", kind)
	case errors.As(err, &selection):
		return err
	}
	return &dispatch.RunFailedError{Err: err}
}
