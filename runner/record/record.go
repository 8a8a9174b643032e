// Package record defines the data of a run: its request, tasks, trials, events, verdicts and
// summary, as they are encoded in journals and sent to clients. It computes nothing and depends
// only on package eval. Start with [Event], from which all other information about a run is
// derived, and [Handle], which gives access to a run of any process.
package record

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"waza/eval"
)

// Matrix reports whether the run has a matrix.
func (r *Run) Matrix() bool { return len(r.Tasks) > 0 && r.Tasks[0].Cell != nil }

// Overrides returns the executor and the agent for which to load the run's suite, see
// [eval.Options]. They are those of the run or, where a matrix chooses them, those of the
// request.
func (r *Run) Overrides() (executor, agent string) {
	if r.Matrix() {
		return r.Asked.Executor, r.Asked.Agent
	}
	return r.Config.Executor, r.Config.Agent
}

// Cells returns the cells of the run's matrix in order; nil without a matrix.
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

// Run is the record of a run's request and plan, as stored in run.json.
type Run struct {
	RunID     string    `json:"runId"`
	CreatedAt time.Time `json:"createdAt"`
	// PID is the process that carries out the run, or the last one that did.
	PID int `json:"pid"`
	// Resumed is the number of times that the run was resumed.
	Resumed int      `json:"resumed,omitempty"`
	Suite   SuiteRef `json:"suite"`
	// Fleet is the address of the fleet that executes the trials, without its password. It is
	// empty when the process executes them itself.
	Fleet string `json:"fleet,omitempty"`
	// Sandbox describes the sandboxes of the trials. It is nil in records of versions without them.
	Sandbox *Sandbox `json:"sandbox,omitempty"`
	// Asked is the request of the caller. Config is the result of the request and the suite.
	Asked   Request     `json:"asked"`
	Config  Config      `json:"config"`
	Tasks   []TaskRef   `json:"tasks"`
	Metrics []MetricRef `json:"metrics,omitempty"`
	// Baseline and Triggers are nil when the suite requests none.
	Baseline *BaselineRef `json:"baseline,omitempty"`
	Triggers *TriggersRef `json:"triggers,omitempty"`
	// ShouldTrigger is nil unless tasks expect that a skill is used, or not, and no executor of
	// the run reports it.
	ShouldTrigger *UnmeasuredTasks `json:"shouldTrigger,omitempty"`
	// Benchmark is nil for other kinds of suites.
	Benchmark *BenchmarkRef `json:"benchmark,omitempty"`
	// Question is the question that the run decides; nil for other runs.
	Question *DecideQuestion `json:"question,omitempty"`
	// Imported is nil for runs that waza executed.
	Imported *Imported `json:"imported,omitempty"`
}

// Imported is the origin of a run that waza imported instead of executing it.
type Imported struct {
	// File is the base name of the imported file.
	File string `json:"file"`
	// Format is the format of the file, such as inspect. It is empty for a results.json of
	// microsoft/waza.
	Format string `json:"format,omitempty"`
	// EvalID is the id of the results in the file; empty when they have none.
	EvalID string `json:"evalId,omitempty"`
	// SchemaVersion is the schema version of the file; empty when it has none.
	SchemaVersion string `json:"schemaVersion,omitempty"`
}

// BaselineRef describes the comparison with an agent without skills, or with earlier skills.
type BaselineRef struct {
	// Against is the revision whose skills the agent of the baseline has; nil if it has none.
	Against *Revision `json:"against,omitempty"`
	// Unmeasured is the reason why waza does not compare; empty when it does.
	Unmeasured string `json:"unmeasured,omitempty"`
}

// TriggersRef describes the suite's trigger tests.
type TriggersRef struct {
	// Skill is the skill under test; empty means any.
	Skill string `json:"skill,omitempty"`
	// Prompts is the number of prompts in the suite, including those that do not run.
	Prompts int `json:"prompts"`
	// Unmeasured is the reason why the trigger tests do not run; empty when they do.
	Unmeasured string `json:"unmeasured,omitempty"`
}

// UnmeasuredTasks describes expectations that waza does not check.
type UnmeasuredTasks struct {
	// Tasks is the number of tasks with the expectation.
	Tasks int `json:"tasks"`
	// Note is the reason.
	Note string `json:"note"`
}

// SuiteRef identifies a suite.
type SuiteRef struct {
	Path        string `json:"path"`
	Name        string `json:"name"`
	Skill       string `json:"skill,omitempty"`
	Version     string `json:"version,omitempty"`
	Description string `json:"description,omitempty"`
	// Kind is absent for a tool_eval.
	Kind eval.SuiteKind `json:"kind,omitempty"`
}

// KindName returns the kind of the suite. It is never empty.
func (s SuiteRef) KindName() eval.SuiteKind { return cmp.Or(s.Kind, eval.ToolEval) }

// Config is the effective configuration of a run: the suite's config as changed by the request.
type Config struct {
	eval.Config
	// Trials is the number of trials per task. Workers is the number of parallel trials.
	Trials int `json:"trials"`
	// Agent is the name of the agent. It is empty when the executor uses none, or when the suite
	// defines the agent itself.
	Agent         string   `json:"agent,omitempty"`
	ActualWorkers int      `json:"actual_workers"`
	TaskFilters   []string `json:"task_filters,omitempty"`
	TagFilters    []string `json:"tag_filters,omitempty"`
	ContextDir    string   `json:"context_dir,omitempty"`
}

// TaskRef is a task of a run.
type TaskRef struct {
	ID string `json:"id"`
	// Cell is the matrix cell of the task, and Task is its id in the suite. Both are absent
	// without a matrix.
	Cell *Cell  `json:"cell,omitempty"`
	Task string `json:"task,omitempty"`
	// Model is the model that the task has of its own, in place of that of its cell or of the run. Use
	// [Run.ModelOf].
	Model string `json:"model,omitempty"`
	// Role is absent for a task of the suite.
	Role Role `json:"role,omitempty"`
	// Of is the id of the task for which this task is the baseline.
	Of string `json:"of,omitempty"`
	// Trigger is the prompt of a trigger test; nil for other roles.
	Trigger     *TriggerRef `json:"trigger,omitempty"`
	Name        string      `json:"name"`
	Description string      `json:"description,omitempty"`
	File        string      `json:"file"`
	Tags        []string    `json:"tags,omitempty"`
	// Golden reports whether the suite requires that the task never fails.
	Golden bool `json:"golden,omitempty"`
	// Cluster names the tasks that are not independent of this one, such as the questions about
	// one document. It is empty for a task by itself, and in older records.
	Cluster string   `json:"cluster,omitempty"`
	Groups  []string `json:"groups,omitempty"`
	Trials  int      `json:"totalTrials"`
	// First is the number of the first trial. It is 1 unless a single trial was requested.
	First int `json:"firstTrial"`
	// TimeoutMS limits one attempt at a trial including graders, in milliseconds. It is absent
	// from older records.
	TimeoutMS int64 `json:"timeoutMs,omitempty"`
	// PassThreshold is the share of counted trials that must pass. Nil, in older records, means
	// all.
	PassThreshold *float64 `json:"passThreshold,omitempty"`
	// Stopping is the confidence at which the verdict can be decided before all trials are
	// started. It is absent when all trials run.
	Stopping float64 `json:"stopping,omitempty"`
	// Paired reports whether the run pairs the trials of the task with those of its other side, and
	// starts only the pairs that decide its question.
	Paired bool `json:"paired,omitempty"`
	// Repos are the commits in the initial workspaces of the task's trials.
	Repos []Checkout `json:"repos,omitempty"`
	// ExpectedCalls are the tool calls that the tool scores rate. It is absent from older
	// records.
	ExpectedCalls []ExpectedCall `json:"expectedCalls,omitempty"`
	// Hash identifies the task by its content, without the number of the trial.
	Hash string `json:"hash"`
	// Execution is the part of Hash that covers the input of the executor. It does not depend on
	// the graders.
	Execution string `json:"execution,omitempty"`
}

// ModelOf returns the model of a task's trials; empty if the executor chooses it.
func (r *Run) ModelOf(t *TaskRef) string {
	switch {
	case t.Model != "":
		return t.Model
	case t.Cell != nil:
		return t.Cell.Model
	}
	return r.Config.Model
}

// ModelsOf returns the different models of the tasks of the suite in a cell, in their order, without those that
// executors choose. A nil cell means all tasks.
func (r *Run) ModelsOf(cell *Cell) (models []string) {
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if t.Role != RoleTask || cell != nil && (t.Cell == nil || t.Cell.Name != cell.Name) {
			continue
		}
		if m := r.ModelOf(t); m != "" && !slices.Contains(models, m) {
			models = append(models, m)
		}
	}
	return models
}

// HasOwnModels reports whether a task has a model of its own.
func (r *Run) HasOwnModels() bool {
	return slices.ContainsFunc(r.Tasks, func(t TaskRef) bool { return t.Role == RoleTask && t.Model != "" })
}

// ModelText names the models of the tasks in a cell; empty if executors choose them. A nil cell means the run,
// whose cells have names of their own, so that only config.model and the models of tasks count.
func (r *Run) ModelText(cell *Cell) string {
	if cell == nil && !r.HasOwnModels() {
		return r.Config.Model
	}
	return strings.Join(r.ModelsOf(cell), ", ")
}

// ExpectedCall is a tool call that a task expects.
type ExpectedCall struct {
	// Tool is the name of the tool, or a regular expression between slashes; empty for any tool.
	Tool string `json:"tool,omitempty"`
	// Arguments are the listed arguments; absent if the call can have any.
	Arguments map[string]any `json:"arguments,omitempty"`
}

// Criteria returns the criteria by which the run is summarized while it runs.
func (r *Run) Criteria() Criteria {
	c := Criteria{Metrics: r.Metrics, Thresholds: make([]float64, len(r.Tasks))}
	for i, t := range r.Tasks {
		if c.Thresholds[i] = 1; t.PassThreshold != nil {
			c.Thresholds[i] = *t.PassThreshold
		}
	}
	return c
}

// MetricRef is a metric of the run.
type MetricRef struct {
	Name      string  `json:"name"`
	Weight    float64 `json:"weight"`
	Threshold float64 `json:"threshold"`
}

// IDTime is the time layout of the first part of a run id.
const IDTime = "20060102-150405.000"
