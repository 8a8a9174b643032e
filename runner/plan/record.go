package plan

import (
	"fmt"
	"strings"
	"time"

	"waza/eval"
	"waza/runner/grader/builtin"
	"waza/runner/record"
)

// Record returns the content of run.json for a run of the plan.
func (p *Plan) Record(id string, now time.Time, pid int) *record.Run {
	s := p.Suite
	rec := &record.Run{
		RunID: id, CreatedAt: now, PID: pid, Asked: recorded(p.Asked), Config: p.Config,
		Benchmark: p.benchmark, Question: p.question, Sandbox: p.Sandbox,
		Suite: record.SuiteRef{Path: s.File, Name: s.Name, Skill: s.Skill, Version: s.Version, Description: s.Description},
	}
	if p.Fleet != nil {
		rec.Fleet = p.Fleet.String()
	}
	if s.Kind != eval.ToolEval {
		rec.Suite.Kind = s.Kind
	}
	for _, t := range p.Tasks {
		rec.Tasks = append(rec.Tasks, record.TaskRef{
			ID: t.ID, Name: t.Name, Description: t.Description, File: t.RelFile, Tags: t.Tags,
			Groups: groups(p.Config.GroupBy, t.Setup, t.Task), Trials: t.Trials, First: t.First, Hash: t.Hash, Execution: t.Execution,
			PassThreshold: &t.Threshold, TimeoutMS: t.Timeout.Milliseconds(),
			Role: t.Role, Trigger: t.Trigger, Cell: t.Cell, Repos: t.repos, ExpectedCalls: t.expectedCalls(id),
		})
		ref := &rec.Tasks[len(rec.Tasks)-1]
		ref.Paired = t.Paired
		if t.canStop() && p.benchmark == nil { // a benchmark measures all trials
			ref.Stopping = p.Config.Stopping.Confidence
		}
		if t.Cell != nil {
			ref.Task = t.Task.ID
		}
		if t.Setup.ownModel {
			ref.Model = t.Setup.Settings.Model
		}
		if t.Role == record.RoleTask || t.Role == record.RoleBaseline {
			ref.Cluster = t.Cluster
		}
		if ref.Golden = t.Golden; t.Role != record.RoleTask {
			ref.Groups, ref.Golden = nil, false
		}
		if t.Role == record.RoleBaseline {
			ref.Of = t.of
		}
	}
	if s.Baseline {
		rec.Baseline = &record.BaselineRef{Against: p.against, Unmeasured: p.baselines}
	}
	if tt := s.Triggers; tt != nil && tt.Prompts() > 0 {
		rec.Triggers = &record.TriggersRef{Skill: tt.Skill, Prompts: tt.Prompts(), Unmeasured: p.triggers}
	}
	rec.ShouldTrigger = p.shouldTrigger()
	rec.Metrics = MetricsOf(s)
	return rec
}

// expectedCalls returns the tool calls that the task expects in its first trial.
func (t *Task) expectedCalls(runID string) []record.ExpectedCall {
	vars := t.Setup.Vars(runID, t.First, 1)
	return builtin.ExpectedCalls(t.Task, func(text string) string {
		if filled, err := t.Expand(text, vars, eval.MaxExpandedBytes); err == nil {
			return filled
		}
		return text
	})
}

// MetricsOf returns the metrics of a suite.
func MetricsOf(s *eval.Suite) []record.MetricRef {
	var list []record.MetricRef
	for _, m := range s.Metrics.List {
		if m.Enabled {
			list = append(list, record.MetricRef{Name: m.Name, Weight: m.Weight, Threshold: m.Threshold})
		}
	}
	return list
}

// groups returns the groups of config.group_by that a task belongs to. Without group_by, its
// cell of the matrix is its group.
func groups(by string, c *Setup, t *eval.Task) []string {
	switch by {
	case "":
		if c.ref != nil {
			return []string{c.ref.Name}
		}
		return nil
	case "model":
		return []string{c.Settings.Model}
	case "tag", "tags":
		return t.Tags
	}
	if v, ok := t.Inputs.Context[strings.TrimPrefix(by, "context.")]; ok {
		return []string{fmt.Sprint(v)}
	}
	return nil
}
