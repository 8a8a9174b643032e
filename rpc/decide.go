package rpc

import (
	"math"

	"waza/rpc/internal/dispatch"
	"waza/runner/record"
)

// DecideOptions asks which of two sides is better.
type DecideOptions struct {
	A         string   `json:"a" jsonschema:"required" doc:"The side to compare with: a model, a cell of the suite's matrix, a git revision of the skills, or none for the agent without skills."`
	B         string   `json:"b" jsonschema:"required" doc:"The side that may be better: a model or a cell, or . for the skills as they are, which a revision and none are compared with."`
	BetterBy  float64  `json:"better_by" jsonschema:"required,exclusiveMinimum=0,maximum=100" doc:"The least gain worth having, in points of the pass rate, more than 0."`
	Risk      *float64 `json:"risk" jsonschema:"exclusiveMinimum=0,exclusiveMaximum=0.5" doc:"The greatest chance of a wrong answer, more than 0 and less than 0.5; 0.05 when absent."`
	MaxCost   *float64 `json:"max_cost,omitempty" jsonschema:"minimum=0" doc:"The most that the run can cost, in US dollars; 0 runs nothing. Either this or max_trials is required."`
	MaxTrials *int     `json:"max_trials,omitempty" jsonschema:"minimum=0" doc:"The most trials that the run can execute; 0 runs nothing."`
	Pairs     int      `json:"pairs" jsonschema:"minimum=1,maximum=500000" doc:"The most pairs of trials of each task; 100 when absent."`
	Seed      int      `json:"seed,omitempty" jsonschema:"minimum=1,maximum=9007199254740992" doc:"The order of tasks. When absent, it is that of the newest run with the same sides, or a random one if there is no such run or fresh is set."`
	Fresh     bool     `json:"fresh" doc:"Reuse no trials of earlier runs."`
}

// NestsParameters makes the members of decide parameters.
func (*DecideOptions) NestsParameters() {}

// question returns the question as runs record it. It refuses options that contradict the question or
// that have no effect beside it.
func (o *RunOptions) question() (*record.DecideRequest, error) {
	d := o.Decide
	if d == nil {
		return nil, nil
	}
	for _, other := range []struct {
		name  string
		given bool
		why   string
	}{
		{"trials", o.Trials > 0, ": give decide.pairs instead"},
		{"fail_fast", o.FailFast, ", because the question ends the run"},
		{"stopping", o.Stopping != nil && *o.Stopping > 0, ", because the question ends the run"},
		{"baseline", o.Baseline && d.B != record.SideFiles, `, unless decide.b is ".", because the question names both sides`},
		{"against", o.Against != "", ": give the revision as decide.a"},
		{"no_skills", o.NoSkills && d.B == record.SideFiles, `, whose side "." needs its skills`},
		{"cache", o.Cache && d.Fresh, ", because decide.fresh reuses no trials"},
	} {
		if other.given {
			return nil, dispatch.WrongParam(other.name, nil, " cannot be combined with decide%s", other.why)
		}
	}
	q := &record.DecideRequest{
		A: d.A, B: d.B, BetterBy: d.BetterBy / 100, Risk: record.DefaultRisk, MaxCost: d.MaxCost, MaxTrials: d.MaxTrials, Pairs: d.Pairs, Seed: d.Seed, Fresh: d.Fresh,
	}
	if q.MaxCost == nil && q.MaxTrials == nil {
		return nil, dispatch.WrongParam("decide", nil, " has no budget: give max_cost or max_trials")
	}
	if q.MaxCost != nil && *q.MaxCost == 0 {
		q.MaxCost, q.MaxTrials = nil, new(int)
	}
	if d.Risk != nil {
		q.Risk = *d.Risk
	}
	return q, nil
}

// decideOptionsOf returns the question that a run was asked as eval.run takes it. It is nil for other runs, and if the
// suite asks the question, whose runs ask it by themselves.
func decideOptionsOf(rec *record.Run) *DecideOptions {
	q := rec.Asked.Decide
	if q == nil || q.MaxCost == nil && q.MaxTrials == nil {
		return nil
	}
	return &DecideOptions{
		A: q.A, B: q.B, BetterBy: points(q.BetterBy), Risk: &q.Risk, MaxCost: q.MaxCost, MaxTrials: q.MaxTrials, Pairs: q.Pairs, Fresh: q.Fresh,
	}
}

// points returns a share in points, without the errors of binary fractions.
func points(share float64) float64 { return math.Round(share*1e8) / 1e6 }
