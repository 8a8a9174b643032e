package trial

import (
	"waza/runner/executor"
	"waza/runner/record"
)

// Owner owns the trials of a run: it alone decides whether a trial starts. In the process of the
// run it is the scheduler. In a worker of a fleet it is the worker's state of the run, which lets
// all trials start and passes on what it hears; there, the process of the run asks the scheduler
// when the worker's note arrives.
//
// An Owner is safe for concurrent use. Its methods return soon, and call no method of the [Env].
type Owner interface {
	// Start is called when a trial is about to start, at most once and before [Do] returns: by
	// the goroutine of Do when the executor has admitted the first attempt (at once, if it admits
	// all), or when the run no longer needs a trial that waits for admission. In a fleet, the
	// goroutine that receives the notes of workers calls it, too. A non-empty skip is the reason
	// why the trial must not start. The verdict is then skipped.
	Start(o *record.Order) (skip string)
	// Halt is called when all further trials of the run would fail for the same reason: by the
	// goroutine of Do, or by one that watches a fleet. It can be called several times.
	Halt(why *executor.StopError)
	// Log is called for each notice to subscribers of the run, by any goroutine of the trial or
	// of its executor. The order is nil for notices about no single trial.
	Log(o *record.Order, n Notice)
}

// Notice is a message about a trial for subscribers of the run.
type Notice struct {
	// Level is debug, info, warning or error.
	Level   string `json:"level"`
	Message string `json:"message"`
	// Attempt is the number of the attempt that starts with the notice; else 0.
	Attempt int `json:"attempt,omitempty"`
}

// nobody is the Owner of trials whose Env names none.
type nobody struct{}

func (nobody) Start(*record.Order) string { return "" }
func (nobody) Halt(*executor.StopError)   {}
func (nobody) Log(*record.Order, Notice)  {}
