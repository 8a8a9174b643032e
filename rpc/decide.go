package rpc

import (
	"waza/rpc/internal/dispatch"
	"waza/runner/record"
)

// DecideOptions asks which of two sides is better.
type DecideOptions struct {
	A         string   `json:"a" jsonschema:"required" doc:"The side to compare with: a model, a cell of the suite's matrix, a git revision of the skills, or none for the agent without skills."`
	B         string   `json:"b" jsonschema:"required" doc:"The side that may be better: a model or a cell, or . for the skills as they are, which a revision and none are compared with."`
	BetterBy  float64  `json:"better_by" jsonschema:"required,maximum=100" doc:"The least gain worth having, in points of the pass rate, more than 0."`
	Risk      *float64 `json:"risk" doc:"The greatest chance of a wrong answer, more than 0 and less than 0.5; 0.05 when absent."`
	MaxCost   *float64 `json:"max_cost" jsonschema:"minimum=0" doc:"The most that the run can cost, in US dollars; 0 runs nothing. Either this or max_trials is required."`
	MaxTrials *int     `json:"max_trials" jsonschema:"minimum=0" doc:"The most trials that the run can execute; 0 runs nothing."`
	Pairs     int      `json:"pairs" jsonschema:"minimum=1,maximum=500000" doc:"The most pairs of trials of each task; 100 when absent."`
	Seed      int      `json:"seed" jsonschema:"minimum=1" doc:"The order of tasks. When absent, it is that of the newest run with the same sides, or a random one if there is no such run or fresh is set."`
	Fresh     bool     `json:"fresh" doc:"Reuse no trials of earlier runs."`
}

// request returns the question as runs record it.
func (o *DecideOptions) request() (*record.DecideRequest, error) {
	q := &record.DecideRequest{
		A: o.A, B: o.B, BetterBy: o.BetterBy / 100, Risk: record.DefaultRisk, MaxCost: o.MaxCost, MaxTrials: o.MaxTrials, Pairs: o.Pairs, Seed: o.Seed, Fresh: o.Fresh,
	}
	if q.MaxCost == nil && q.MaxTrials == nil {
		return nil, dispatch.WrongParam("decide", nil, " has no budget: give max_cost or max_trials")
	}
	if q.MaxCost != nil && *q.MaxCost == 0 {
		q.MaxCost, q.MaxTrials = nil, new(int)
	}
	if o.Risk != nil {
		if q.Risk = *o.Risk; !(q.Risk > 0 && q.Risk < 0.5) {
			return nil, dispatch.WrongParam("decide", nil, " has a risk of %v; it must be more than 0 and less than 0.5", q.Risk)
		}
	}
	return q, nil
}
