package rpc

import (
	"context"
	"errors"

	"waza/eval"
	"waza/rpc/internal/dispatch"
	"waza/runner/power"
	"waza/runner/record"
)

type evalPlanParams struct {
	Path   string      `json:"path" jsonschema:"required" doc:"Suite file, or a directory that holds one suite; a path or a file URI."`
	Tasks  []string    `json:"tasks" doc:"Plan only for tasks whose id or name matches one of these globs."`
	Tags   []string    `json:"tags" doc:"Plan only for tasks with a tag that matches one of these globs."`
	Params paramValues `json:"params" doc:"Values of the parameters of the suite, as in eval.run."`
	Detect *float64    `json:"detect" doc:"The gain to detect, in points of the pass rate, more than 0 and less than 100; 5 when absent."`
	Power  *float64    `json:"power" jsonschema:"minimum=0.5,maximum=0.999" doc:"The wanted chance to detect it; 0.8 when absent."`
}

type evalPlanResult struct {
	Path string `json:"path" doc:"The suite's file."`
	Name string `json:"name" doc:"Name of the suite."`
	*power.Plan
}

// planComparison plans a comparison as waza plan does.
func planComparison(ctx context.Context, c *call, p *evalPlanParams) (*evalPlanResult, error) {
	q := power.Question{Detect: power.DefaultDetect, Power: power.DefaultPower}
	if p.Detect != nil {
		if q.Detect = *p.Detect / 100; !(q.Detect > 0 && q.Detect < 1) {
			return nil, dispatch.WrongParam("detect", nil, " must be more than 0 and less than 100 points, got %v", *p.Detect)
		}
	}
	if p.Power != nil {
		q.Power = *p.Power
	}
	suite, err := load(ctx, c, p.Path, eval.Options{Params: p.Params})
	if err != nil {
		return nil, err
	}
	q.Tasks, err = c.conn.runner.Planner().TaskIDs(ctx, suite, record.Request{Tasks: p.Tasks, Tags: p.Tags, Params: p.Params})
	if err != nil {
		return nil, err
	}
	if len(q.Tasks) == 0 {
		return nil, dispatch.WrongParam("path", nil, ": the suite has no tasks")
	}
	if q.Records, err = power.Read(ctx, c.conn.runner.Catalog(), []string{suite.File}); err != nil {
		return nil, err
	}
	planned, err := power.New(q)
	if unreachable, ok := errors.AsType[*power.UnreachableError](err); ok {
		return nil, &dispatch.ParamError{Parameter: "detect", Message: unreachable.Error()}
	}
	if err != nil {
		return nil, err
	}
	return &evalPlanResult{suite.File, suite.Name, planned}, nil
}
