package record

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"waza/eval"
	"waza/eval/relocate"
)

// Order contains everything that a process needs to execute one trial of a run. It is plain data
// that survives encoding as JSON. Files are named by their paths and, for fixtures and files of
// graders, by the hashes of their contents. An order contains no provider keys and no environment: the executing
// process uses its own.
//
// Orders of one run share their Suite, and orders of one task share their Task. An order must
// not change once it is made.
type Order struct {
	RunID string `json:"runId"`
	// TaskID is the id of the task in the run. TaskNum is its number there, from 1.
	TaskID  string `json:"taskId"`
	TaskNum int    `json:"taskNum"`
	// Num is the number of the trial. Hash identifies the trial by its content.
	Num  int    `json:"trial"`
	Hash string `json:"hash"`
	Role Role   `json:"role,omitempty"`
	// Trigger is the prompt of a trigger test; nil for other roles.
	Trigger *TriggerRef `json:"trigger,omitempty"`

	// Suite is encoded without its tasks, see [eval.Suite.MarshalJSON].
	Suite *eval.Suite `json:"suite"`
	// Task is the task to execute. Its texts, hooks and programs see the id and name that it has
	// here.
	Task *eval.Task `json:"task"`
	// Fixtures maps the paths of the task's fixtures to the hashes of their contents when the run
	// was planned. Inputs does so for the files that the executor reads, below the suite's root:
	// its program, skills and instructions. Both are nil if hooks run before tasks, because hooks
	// can write such files.
	Fixtures map[string]string `json:"fixtures,omitempty" path:"keys"`
	Inputs   map[string]string `json:"inputs,omitempty" path:"keys"`
	// GraderFiles maps the paths of the files that the task's graders name, below the suite's
	// root, to the hashes of their contents when the run was planned. It is nil if hooks run
	// before the first task, because they can write such files.
	GraderFiles map[string]string `json:"graderFiles,omitempty" path:"keys"`
	// Repos are the commits that are checked out into the workspace, in the order of the task's
	// repos.
	Repos []Checkout `json:"repos,omitempty"`

	// Executor is the canonical name of the executor. Options are its options as its kind
	// declares them.
	Executor string `json:"executor"`
	Options  any    `json:"options,omitempty"`
	Model    string `json:"model,omitempty"`
	// Params are the parameters of the trial's cell of the matrix, in the form that templates
	// receive.
	Params map[string]string `json:"params,omitempty"`
	// Judge is the default model of graders that ask a model.
	Judge string `json:"judge,omitempty"`
	// Workers is the number of trials of the run that are executed in parallel.
	Workers int `json:"workers"`

	// Timeout limits one attempt including graders, in nanoseconds.
	Timeout time.Duration `json:"timeout"`
	// TimeoutAsked reports whether the request of the run set Timeout, not the suite.
	TimeoutAsked bool `json:"timeoutAsked,omitempty"`
	// MaxAttempts is the maximum number of attempts at a trial that fails. RetryErrors is the
	// maximum number of retries of a trial that ends in error.
	MaxAttempts int `json:"maxAttempts"`
	RetryErrors int `json:"retryErrors"`

	// Against is the revision whose skills the agent of the baseline has; nil if it has none, and
	// without a baseline.
	Against *Revision `json:"against,omitempty"`
	// Baseline is the trial that pairwise judges compare with; nil without one.
	Baseline *Baseline `json:"baseline,omitempty"`

	// Needs lists the requirements on a machine that executes the trial, as returned by
	// [JoinNeeds]. It is nil when every waza can execute it. Files of the suite are not listed.
	Needs []Need `json:"needs,omitempty"`
}

// Relocate returns the order with its paths mapped to another place. Orders that share a suite,
// a task or options share the copies that a Copier made of them.
func (o *Order) Relocate(c *relocate.Copier) (*Order, error) {
	moved, err := relocate.Copy(c, *o)
	if err != nil {
		return nil, fmt.Errorf("order of task %s: %w", o.TaskID, err)
	}
	return &moved, nil
}

// Vars returns the template variables of an attempt at the trial. Attempts count from 1.
func (o *Order) Vars(attempt int) eval.TrialVars {
	return eval.TrialVars{RunID: o.RunID, Trial: o.Num, Attempt: attempt, Model: o.Model, Params: o.Params}
}

// Need is a requirement on a machine that executes a trial.
type Need struct {
	Kind NeedKind `json:"kind"`
	// Name is the name of the required thing. A key is named by the environment variable that
	// holds it.
	Name string `json:"name"`
}

// NeedKind is the kind of a [Need].
type NeedKind string

// The kinds of needs.
const (
	NeedExecutor NeedKind = "executor" // an executor that is not built in
	NeedGrader   NeedKind = "grader"   // a grader that is not built in
	NeedAgent    NeedKind = "agent"    // an agent preset, such as copilot
	NeedProgram  NeedKind = "program"  // a program on PATH, or an absolute path
	NeedKey      NeedKind = "key"      // an environment variable that holds a key
	NeedLabel    NeedKind = "label"    // a label that people give to machines
	NeedSandbox  NeedKind = "sandbox"  // a [Tier] of sandboxes
)

// String names the requirement, such as "the agent copilot".
func (n Need) String() string {
	kind := string(n.Kind)
	if n.Kind == NeedKey {
		kind = "variable"
	}
	return "the " + kind + " " + n.Name
}

// JoinNeeds merges the lists, without duplicates and sorted by kind and name; nil when all are
// empty. The caller owns the slice.
func JoinNeeds(lists ...[]Need) []Need {
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(a, b Need) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return slices.Clip(slices.Compact(all))
}

// Baseline is the result of a task in the trial of the baseline with the same number.
type Baseline struct {
	Output string `json:"output"`
	// Missing is the reason why there is nothing to compare with; empty otherwise.
	Missing string `json:"missing,omitempty"`
}

// Checkout is a commit of a git repository that waza checks out into the workspaces of a task.
type Checkout struct {
	// Source is the absolute path of the directory that contains the repository.
	Source string `json:"source" path:"repo"`
	// Name is the name of the commit in the suite. Commit is the id that the name resolved to
	// when the run was planned.
	Name   string `json:"name,omitempty"`
	Commit string `json:"commit"`
	// Dest is the folder in the workspace, with slashes; "." is the workspace itself.
	Dest string `json:"dest"`
}
