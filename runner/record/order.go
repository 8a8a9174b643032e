package record

import (
	"time"

	"waza/eval"
)

// Order is all that it takes to do one trial of a run, in this process or in another
// one: plain data that survives encoding as JSON. Files are named by their paths and,
// where they are fixtures, by the hashes of their contents. Keys of providers and the
// environment are not part of it: who does the trial uses its own.
//
// Orders of one run share their Suite, and orders of one task their Task. Nobody
// changes an order once it is made.
type Order struct {
	RunID string `json:"runId"`
	// TaskID is that of the task in the run, TaskNum its number there, from 1.
	TaskID  string `json:"taskId"`
	TaskNum int    `json:"taskNum"`
	// Num is the number of the trial, Hash its name by content.
	Num  int    `json:"trial"`
	Hash string `json:"hash"`
	Role Role   `json:"role,omitempty"`
	// Trigger is what a trigger test asks; nil for other roles.
	Trigger *TriggerRef `json:"trigger,omitempty"`

	// Suite is encoded without its tasks, see [eval.Suite.MarshalJSON].
	Suite *eval.Suite `json:"suite"`
	// Task is what is done. Its id and name are those that its texts, hooks and
	// programs see.
	Task *eval.Task `json:"task"`
	// Fixtures are the hashes of the contents of the task's fixtures, by their paths.
	Fixtures map[string]string `json:"fixtures,omitempty"`

	// Executor is the canonical name of what does the trial, Options are its options as
	// its kind declares them.
	Executor string `json:"executor"`
	Options  any    `json:"options,omitempty"`
	Model    string `json:"model,omitempty"`
	// Params are the parameters of the trial's cell of the matrix, as texts get them.
	Params map[string]string `json:"params,omitempty"`
	// Judge is the model of graders that ask one and name none.
	Judge string `json:"judge,omitempty"`
	// Workers is how many trials of the run are done at once.
	Workers int `json:"workers"`

	// Timeout bounds one attempt, graders included, in nanoseconds.
	Timeout time.Duration `json:"timeout"`
	// MaxAttempts is how often a trial that failed is tried in all, RetryErrors how
	// often one in error is tried again.
	MaxAttempts int `json:"maxAttempts"`
	RetryErrors int `json:"retryErrors"`

	// Baseline is what pairwise judges compare the trial with; nil without one.
	Baseline *Baseline `json:"baseline,omitempty"`
}

// Vars are the template variables of an attempt at the trial, from 1.
func (o *Order) Vars(attempt int) eval.TrialVars {
	return eval.TrialVars{RunID: o.RunID, Trial: o.Num, Attempt: attempt, Model: o.Model, Params: o.Params}
}

// Baseline is what a task gave in the trial of the same number without skills.
type Baseline struct {
	Output string `json:"output"`
	// Missing says why there is nothing to compare with; empty when there is.
	Missing string `json:"missing,omitempty"`
}
