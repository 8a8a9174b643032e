package record

import (
	"errors"
	"fmt"
	"strings"

	"waza/eval/decode"
)

// A BusyError reports that the record of a run cannot be changed now.
type BusyError struct {
	RunID string
	// Running reports whether the run is still running. If not, another caller is changing its
	// record.
	Running bool
	// PID is the process that carries out the run; 0 where it does not matter.
	PID int
}

func (e *BusyError) Error() string {
	if e.Running && e.PID != 0 {
		return fmt.Sprintf("run %s is still running in process %d", e.RunID, e.PID)
	}
	if e.Running {
		return fmt.Sprintf("run %s is still running", e.RunID)
	}
	return fmt.Sprintf("run %s is already being graded or reviewed; try again later", e.RunID)
}

// A SelectionError reports that a request selects nothing to run.
type SelectionError struct {
	What     string // the filter that matches nothing: "task", "tag" or "trial"; empty when the suite has no tasks
	Patterns []string
	Known    []string
	// Unmeasured is the reason why trigger tests, which the suite has, cannot run.
	Unmeasured string
	// Skipped is the reason why a benchmark has nothing to measure.
	Skipped string
}

func (e *SelectionError) Error() string {
	switch {
	case e.Skipped != "":
		return "nothing to run: " + e.Skipped
	case e.Unmeasured != "":
		return "nothing to run except trigger tests: " + e.Unmeasured
	case e.What == "":
		return "the suite has no tasks to run"
	}
	msg := fmt.Sprintf("no task of the suite matches %s %s", e.What, strings.Join(quoted(e.Patterns), ", "))
	if len(e.Known) > 0 {
		msg += "; the suite has " + strings.Join(e.Known[:min(len(e.Known), 20)], ", ")
		if n := len(e.Known) - 20; n > 0 {
			msg += fmt.Sprintf(" and %d more", n)
		}
	}
	return msg
}

func quoted(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = fmt.Sprintf("%q", s)
	}
	return out
}

// An UnknownExecutorError reports that no executor has the requested name. Without a name, nobody
// chose an executor for a suite in a format that has none.
type UnknownExecutorError struct {
	Name  string
	Known []string
}

func (e *UnknownExecutorError) Error() string {
	if e.Name == "" {
		return "no agent is chosen, and the format of this suite names none; use `waza run --agent NAME SUITE`, " +
			"such as --agent claude-code, or --executor NAME, or set defaults.agent in .waza.yaml"
	}
	msg := fmt.Sprintf("unknown executor %q; known executors: %s", e.Name, strings.Join(e.Known, ", "))
	if near := decode.Nearest(e.Name, e.Known); near != "" {
		msg += fmt.Sprintf(" (did you mean %q?)", near)
	}
	return msg
}

// IsUnchosen reports whether err is an [UnknownExecutorError] without a name. Such a suite is valid,
// and needs a choice before it can run.
func IsUnchosen(err error) bool {
	var unknown *UnknownExecutorError
	return errors.As(err, &unknown) && unknown.Name == ""
}

// A LimitError reports that a run would exceed a limit of waza.
type LimitError struct {
	What       string
	Got, Limit int
	Reason     string // the reason of the limit, appended to the message; may be empty
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%d %s exceed the limit of %d%s", e.Got, e.What, e.Limit, e.Reason)
}

// A FleetError reports why the requested fleet cannot execute the trials of a run.
type FleetError struct{ Err error }

func (e *FleetError) Error() string { return e.Err.Error() }

func (e *FleetError) Unwrap() error { return e.Err }

// ErrRunNotFound reports that no run has the given id.
var ErrRunNotFound = errors.New("no such run")

// ChangedError reports that a file of the suite changed since the run was planned, so that a trial
// would not be the planned one.
type ChangedError struct {
	File string // absolute path
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s changed since the run was planned; start the run again", e.File)
}
