package compare

import (
	"fmt"
	"strconv"

	"waza/runner/figure"
	"waza/runner/record"
)

// OnTasks states the effect of tasks that only one of two runs has.
type OnTasks string

// The values of OnTasks.
const (
	OnTasksAllow OnTasks = "allow"
	OnTasksWarn  OnTasks = "warn"
	OnTasksFail  OnTasks = "fail"
)

// OnTasksNames returns all values of OnTasks.
func OnTasksNames() []string {
	return []string{string(OnTasksAllow), string(OnTasksWarn), string(OnTasksFail)}
}

// Policies are requirements for a run without statistics. They use the numbers as they are, so
// chance alone can break or meet them. The zero value requires nothing.
type Policies struct {
	// MaxRegressionPct is the most percentage points by which the share of passed tasks can be
	// lower than in the reference; nil means no limit.
	MaxRegressionPct *float64
	// GoldenMustPass requires every task to pass that is golden in the reference or in the run.
	GoldenMustPass bool
	// OnNewTasks applies to tasks that the reference does not have, OnRemovedTasks to tasks that
	// only the reference has. Empty means allow.
	OnNewTasks, OnRemovedTasks OnTasks
}

// PolicyKind identifies a policy.
type PolicyKind string

// The policies.
const (
	PolicyRegression  PolicyKind = "regression"
	PolicyGolden      PolicyKind = "golden_failure"
	PolicyNewTask     PolicyKind = "new_task"
	PolicyRemovedTask PolicyKind = "removed_task"
	// PolicySandbox only warns: the trials of the runs did not have the same protection.
	PolicySandbox PolicyKind = "sandbox"
)

// A PolicyFinding describes a policy that a run breaks.
type PolicyFinding struct {
	Kind    PolicyKind `json:"kind"`
	Message string     `json:"message"`
	// TaskID and TaskName are empty if the finding is not about a single task.
	TaskID   string `json:"taskId,omitempty"`
	TaskName string `json:"taskName,omitempty"`
}

// A PolicyResult states whether a run meets the policies.
type PolicyResult struct {
	Passed bool `json:"passed"`
	// ReferenceSuccessRate and RunSuccessRate are the shares, from 0 to 1, of passed tasks among
	// the tasks that passed, failed or timed out; nil if there are no such tasks. They cover all
	// tasks of a run, not only the common ones.
	ReferenceSuccessRate *float64 `json:"referenceSuccessRate"`
	RunSuccessRate       *float64 `json:"runSuccessRate"`
	// RegressionPct is the difference of these rates in percentage points. It is negative if the
	// run's rate is higher, and nil if one of the rates is nil.
	RegressionPct *float64 `json:"regressionPct"`
	// MaxRegressionPct is the allowed regression; nil means no limit.
	MaxRegressionPct *float64 `json:"maxRegressionPct"`
	// Unmeasured is the reason why a policy's regression could not be measured; empty if it
	// could.
	Unmeasured string `json:"unmeasured,omitempty"`
	// Failures break a policy; Warnings come from policies with the value warn, and
	// from differences between the sandboxes of the runs.
	Failures []PolicyFinding `json:"failures"`
	Warnings []PolicyFinding `json:"warnings"`
}

// policies checks the run against the policies.
func (p *pairing) policies(want *Policies) *PolicyResult {
	r := &PolicyResult{MaxRegressionPct: want.MaxRegressionPct, Failures: []PolicyFinding{}, Warnings: []PolicyFinding{}}
	a, b := p.ref.successRate(p.wanted.Matches), p.run.successRate(p.wanted.Matches)
	r.ReferenceSuccessRate, r.RunSuccessRate = a, b
	if a != nil && b != nil {
		lower := 100 * (*a - *b)
		r.RegressionPct = &lower
	}
	if most := want.MaxRegressionPct; most != nil {
		switch {
		case r.RegressionPct == nil:
			r.Unmeasured = "in one of the runs no task passed or failed"
		case *r.RegressionPct > *most+1e-9:
			r.Failures = append(r.Failures, PolicyFinding{Kind: PolicyRegression, Message: fmt.Sprintf(
				"the share of passed tasks fell by %s points, from %s to %s; the limit is %s",
				figure.PercentPoints(*r.RegressionPct, *most), figure.Percent(*a), figure.Percent(*b), strconv.FormatFloat(*most, 'g', -1, 64))})
		}
	}
	if want.GoldenMustPass {
		p.golden(r)
	}
	for _, id := range p.result.OnlyRun {
		r.on(want.OnNewTasks, PolicyNewTask, p.run.byID[id], "is new")
	}
	for _, id := range p.result.OnlyReference {
		r.on(want.OnRemovedTasks, PolicyRemovedTask, p.ref.byID[id], "was removed")
	}
	if why := p.ref.head.Sandbox.Differs(p.run.head.Sandbox); why != "" {
		r.Warnings = append(r.Warnings, PolicyFinding{Kind: PolicySandbox, Message: why})
	}
	r.Passed = len(r.Failures) == 0 && r.Unmeasured == ""
	return r
}

// successRate returns the share of passed tasks among the wanted tasks of a run; nil if no
// wanted task passed or failed.
func (s *side) successRate(wanted func(names []string) bool) *float64 {
	var c record.Counts
	for _, t := range s.tasks {
		if wanted(t.names()) {
			c.Add(t.verdict)
		}
	}
	if c.Counted() == 0 {
		return nil
	}
	rate := float64(c.Passed) / float64(c.Counted())
	return &rate
}

// golden adds the golden tasks that did not pass.
func (p *pairing) golden(r *PolicyResult) {
	fail := func(t *sideTask, format string, args ...any) {
		r.Failures = append(r.Failures, PolicyFinding{
			Kind: PolicyGolden, TaskID: t.id, TaskName: t.ref.Name, Message: fmt.Sprintf("golden task %q ", t.id) + fmt.Sprintf(format, args...),
		})
	}
	for _, t := range p.run.tasks {
		before := p.ref.byID[t.id]
		if !p.wanted.Matches(t.names()) || !t.ref.Golden && (before == nil || !before.ref.Golden) || t.verdict == record.Passed {
			continue
		}
		if t.verdict == "" {
			fail(t, "has not ended")
		} else {
			fail(t, "did not pass: %s", t.verdict)
		}
	}
	for _, t := range p.ref.tasks {
		if p.wanted.Matches(t.names()) && t.ref.Golden && p.run.byID[t.id] == nil {
			fail(t, "was removed")
		}
	}
}

// on adds a finding about a task that one of the runs does not have.
func (r *PolicyResult) on(what OnTasks, kind PolicyKind, t *sideTask, became string) {
	f := PolicyFinding{Kind: kind, TaskID: t.id, TaskName: t.ref.Name, Message: fmt.Sprintf("task %q %s", t.id, became)}
	switch what {
	case OnTasksFail:
		r.Failures = append(r.Failures, f)
	case OnTasksWarn:
		r.Warnings = append(r.Warnings, f)
	}
}
