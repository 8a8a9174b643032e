package record

import (
	"time"
)

// Request is what a caller asks of a suite beyond what it says itself. The zero
// value runs it as it says.
type Request struct {
	// Executor and Model replace those of the suite when not empty.
	Executor string `json:"executor,omitempty"`
	Model    string `json:"model,omitempty"`
	// Models replace those of the suite when there are several, and count instead of
	// Model then.
	Models []string `json:"models,omitempty"`
	// Agent and ContextDir are recorded only: they had their effect when the
	// suite was loaded.
	Agent      string `json:"agent,omitempty"`
	ContextDir string `json:"contextDir,omitempty"`
	// Tasks and Tags are globs; a task is run when its id or name matches one
	// of Tasks and a tag of it one of Tags. Empty means all. The id may be that
	// which a task has in a cell of the matrix: it is run in that cell then.
	Tasks []string `json:"tasks,omitempty"`
	Tags  []string `json:"tags,omitempty"`
	// Task runs only the task of just that id when not empty.
	Task string `json:"task,omitempty"`
	// Trials replaces trials_per_task when positive.
	Trials int `json:"trials,omitempty"`
	// Trial runs only the trial of that number when positive.
	Trial int `json:"trial,omitempty"`
	// Workers replaces the number of workers, and runs trials in parallel, when positive.
	Workers int `json:"workers,omitempty"`
	// Timeout replaces the timeouts of suite and tasks when positive. In JSON
	// it is in nanoseconds.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Verbose sends more log events, as config.verbose does.
	Verbose bool `json:"verbose,omitempty"`
	// FailFast stops after the first task that failed, as config.fail_fast does.
	FailFast bool `json:"failFast,omitempty"`
	// Cache takes trials over that an earlier run has done, instead of doing them.
	Cache bool `json:"cache,omitempty"`
	// Stopping replaces the confidence of config.stopping when not nil; 0 means that
	// all trials are done.
	Stopping *float64 `json:"stopping,omitempty"`
}
