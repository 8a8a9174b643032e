package record

import (
	"time"
)

// The values of Request.Fleet that are not addresses.
const (
	FleetNone  = "none"  // the process executes the trials of its run, whatever the suite sets
	FleetSuite = "suite" // the fleet that the suite names, wherever its servers are
)

// Request selects what to run of a suite and overrides its settings. The zero value runs the
// suite as it is.
type Request struct {
	// Executor and Model replace those of the suite when not empty.
	Executor string `json:"executor,omitempty"`
	Model    string `json:"model,omitempty"`
	// Models replaces the models of the suite when it has several elements. Model is then
	// ignored.
	Models []string `json:"models,omitempty"`
	// Agent and ContextDir are only recorded. They took effect when the suite was loaded.
	Agent      string `json:"agent,omitempty"`
	ContextDir string `json:"contextDir,omitempty"`
	// JudgeModel and JudgeAgent are only recorded, like Agent.
	JudgeModel string `json:"judgeModel,omitempty"`
	JudgeAgent string `json:"judgeAgent,omitempty"`
	// Sandbox is only recorded, like Agent: a mode or a map that changes keys of config.sandbox.
	Sandbox string `json:"sandbox,omitempty"`
	// ExactTools requires exact tool names, like config.exact_tools.
	ExactTools bool `json:"exactTools,omitempty"`
	// Fleet is the address of the fleet that executes the trials (see package address), or
	// [FleetNone] or [FleetSuite]. Empty means the suite's fleet, as far as the user's own fleet
	// setting allows it. Records store the address without its password.
	Fleet string `json:"fleet,omitempty"`
	// Tasks and Tags are globs. A task runs if its id or name matches one of Tasks and one of
	// its tags matches one of Tags. Empty means all. The id may be that of a task in a cell of
	// the matrix; the task then runs in that cell.
	Tasks []string `json:"tasks,omitempty"`
	Tags  []string `json:"tags,omitempty"`
	// Task runs only the task with exactly that id when not empty.
	Task string `json:"task,omitempty"`
	// Trials replaces trials_per_task when positive.
	Trials int `json:"trials,omitempty"`
	// Trial runs only the trial with that number when positive.
	Trial int `json:"trial,omitempty"`
	// Workers replaces the number of workers, and enables parallel trials, when positive.
	Workers int `json:"workers,omitempty"`
	// Timeout replaces the timeouts of the suite and its tasks when positive. It is encoded in
	// nanoseconds.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Verbose sends more log events, like config.verbose.
	Verbose bool `json:"verbose,omitempty"`
	// FailFast stops after the first task that failed, like config.fail_fast.
	FailFast bool `json:"failFast,omitempty"`
	// Cache reuses trials of earlier runs instead of executing them.
	Cache bool `json:"cache,omitempty"`
	// Stopping replaces the confidence of config.stopping when not nil; 0 runs all trials.
	Stopping *float64 `json:"stopping,omitempty"`
	// Baseline also runs each task without its skills, like baseline: true in a suite.
	Baseline bool `json:"baseline,omitempty"`
	// Against gives the agent of the baseline the skills as they are at a revision, unless nil. It
	// requires Baseline.
	Against *Revision `json:"against,omitempty"`
	// NoSkills withholds all skills from agents.
	NoSkills bool `json:"noSkills,omitempty"`
	// FirstTool lets the first tool call decide the trials of trigger tests, like first_tool of these.
	FirstTool bool `json:"firstTool,omitempty"`
	// SkipGraders grades no task. Trigger tests are still graded.
	SkipGraders bool `json:"skipGraders,omitempty"`
	// UpdateSnapshots lets diff graders replace their snapshots.
	UpdateSnapshots bool `json:"updateSnapshots,omitempty"`
	// Params are the values of parameters of the suite, by their names.
	Params map[string]string `json:"params,omitempty"`
	// SecretParams are the names of Params whose values are not recorded, besides those that are secret by their names.
	SecretParams []string `json:"-"`
	// Decide asks which of two sides is better, unless nil. It replaces config.decide.
	Decide *DecideRequest `json:"decide,omitempty"`
	// PassReward replaces pass_reward of reward graders when not nil.
	PassReward *float64 `json:"passReward,omitempty"`
}
