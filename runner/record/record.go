// Package record holds the nouns of a run: its request, tasks, trials, events,
// verdicts and summary, as they are encoded in journals and sent to clients. It
// computes nothing and imports nothing but package eval; start with [Event], from
// which everything else about a run is derived, and [Handle], which gives access to
// a run of any process.
package record

import (
	"cmp"
	"time"

	"waza/eval"
)

// Matrix reports whether the run has a matrix.
func (r *Run) Matrix() bool { return len(r.Tasks) > 0 && r.Tasks[0].Cell != nil }

// Overrides are the executor and the agent that the run's suite is to be loaded
// for, see [eval.Options]: those that the run had or, where a matrix chooses, those
// that were asked for.
func (r *Run) Overrides() (executor, agent string) {
	if r.Matrix() {
		return r.Asked.Executor, r.Asked.Agent
	}
	return r.Config.Executor, r.Config.Agent
}

// Cells are those of the run's matrix, in its order; none without one.
func (r *Run) Cells() []*Cell {
	var cells []*Cell
	seen := map[string]bool{}
	for i := range r.Tasks {
		if c := r.Tasks[i].Cell; c != nil && !seen[c.Name] {
			seen[c.Name] = true
			cells = append(cells, c)
		}
	}
	return cells
}

// Run is what was asked of a run, as run.json keeps it.
type Run struct {
	RunID     string    `json:"runId"`
	CreatedAt time.Time `json:"createdAt"`
	// PID is the process that carries the run out, or did so last.
	PID int `json:"pid"`
	// Resumed is how often the run was taken up again.
	Resumed int      `json:"resumed,omitempty"`
	Suite   SuiteRef `json:"suite"`
	// Asked is what the caller asked for beyond what the suite says. Config is
	// what came of both.
	Asked   Request     `json:"asked"`
	Config  Config      `json:"config"`
	Tasks   []TaskRef   `json:"tasks"`
	Metrics []MetricRef `json:"metrics,omitempty"`
	// Baseline and Triggers are nil when the suite asks for none.
	Baseline *BaselineRef `json:"baseline,omitempty"`
	Triggers *TriggersRef `json:"triggers,omitempty"`
	// Benchmark is nil of other kinds of suites.
	Benchmark *BenchmarkRef `json:"benchmark,omitempty"`
}

// BaselineRef reports the comparison with an agent without skills.
type BaselineRef struct {
	// Unmeasured says why it is not done; empty when it is.
	Unmeasured string `json:"unmeasured,omitempty"`
}

// TriggersRef reports the suite's trigger tests.
type TriggersRef struct {
	// Skill under test; empty means any.
	Skill string `json:"skill,omitempty"`
	// Prompts is how many the suite has, run or not.
	Prompts int `json:"prompts"`
	// Unmeasured says why they are not run; empty when they are.
	Unmeasured string `json:"unmeasured,omitempty"`
}

// SuiteRef names a suite.
type SuiteRef struct {
	Path        string `json:"path"`
	Name        string `json:"name"`
	Skill       string `json:"skill,omitempty"`
	Version     string `json:"version,omitempty"`
	Description string `json:"description,omitempty"`
	// Kind is absent of a tool_eval.
	Kind eval.SuiteKind `json:"kind,omitempty"`
}

// KindName is the kind of the suite, which is never empty.
func (s SuiteRef) KindName() eval.SuiteKind { return cmp.Or(s.Kind, eval.ToolEval) }

// Config is how a run was carried out: the suite's config with what the
// request changed.
type Config struct {
	eval.Config
	// Trials is the number of trials per task, Workers how many run at once.
	Trials int `json:"trials"`
	// Agent is the name of the agent that was driven; empty when the executor
	// drives none, or one that the suite writes out.
	Agent         string   `json:"agent,omitempty"`
	ActualWorkers int      `json:"actual_workers"`
	TaskFilters   []string `json:"task_filters,omitempty"`
	TagFilters    []string `json:"tag_filters,omitempty"`
	ContextDir    string   `json:"context_dir,omitempty"`
}

// TaskRef is a task of a run.
type TaskRef struct {
	ID string `json:"id"`
	// Cell is the cell of the matrix that the task belongs to, Task its id in the
	// suite; both are absent without a matrix.
	Cell *Cell  `json:"cell,omitempty"`
	Task string `json:"task,omitempty"`
	// Role is absent for a task of the suite.
	Role Role `json:"role,omitempty"`
	// Of is the id of the task whose baseline it is.
	Of string `json:"of,omitempty"`
	// Trigger is what a trigger test asks; nil for other roles.
	Trigger     *TriggerRef `json:"trigger,omitempty"`
	Name        string      `json:"name"`
	Description string      `json:"description,omitempty"`
	File        string      `json:"file"`
	Tags        []string    `json:"tags,omitempty"`
	Groups      []string    `json:"groups,omitempty"`
	Trials      int         `json:"totalTrials"`
	// First is the number of the first trial: 1, but when a single trial was asked for.
	First int `json:"firstTrial"`
	// TimeoutMS bounds one attempt at a trial, graders included, in milliseconds;
	// absent from older records.
	TimeoutMS int64 `json:"timeoutMs,omitempty"`
	// PassThreshold is the share of counted trials that must pass; nil, in
	// older records, means all.
	PassThreshold *float64 `json:"passThreshold,omitempty"`
	// Stopping is the confidence with which the verdict may be decided before all
	// trials are started; absent when all are to be.
	Stopping float64 `json:"stopping,omitempty"`
	// Hash names the task by its content, without the trial's number.
	Hash string `json:"hash"`
	// Execution is that part of Hash which says what an executor was given;
	// how trials were graded is no part of it.
	Execution string `json:"execution,omitempty"`
}

// Criteria are those by which the run is summed up as it goes on.
func (r *Run) Criteria() Criteria {
	c := Criteria{Metrics: r.Metrics, Thresholds: make([]float64, len(r.Tasks))}
	for i, t := range r.Tasks {
		if c.Thresholds[i] = 1; t.PassThreshold != nil {
			c.Thresholds[i] = *t.PassThreshold
		}
	}
	return c
}

// MetricRef is a metric the run measures.
type MetricRef struct {
	Name      string  `json:"name"`
	Weight    float64 `json:"weight"`
	Threshold float64 `json:"threshold"`
}

// IDTime is how an id begins.
const IDTime = "20060102-150405.000"
