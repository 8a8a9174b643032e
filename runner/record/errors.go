package record

import (
	"errors"
	"fmt"
	"strings"

	"waza/eval/decode"
)

// BusyError says that the record of a run cannot be changed now.
type BusyError struct {
	RunID string
	// GoesOn: the run is not over. If not, somebody else changes its record.
	GoesOn bool
	// PID is the process that carries it out, where that matters; else 0.
	PID int
}

func (e *BusyError) Error() string {
	if e.GoesOn && e.PID != 0 {
		return fmt.Sprintf("run %s still goes on, in process %d", e.RunID, e.PID)
	}
	if e.GoesOn {
		return fmt.Sprintf("run %s still goes on", e.RunID)
	}
	return fmt.Sprintf("run %s is being graded or reviewed already; try again when that is done", e.RunID)
}

// SelectionError says that there is nothing to run.
type SelectionError struct {
	What     string // the filter that leaves nothing: "task", "tag" or "trial"; empty when the suite has no task
	Patterns []string
	Known    []string
	// Unmeasured says why trigger tests, of which there are, are nothing to run.
	Unmeasured string
	// Skipped says why a benchmark has nothing to measure.
	Skipped string
}

func (e *SelectionError) Error() string {
	switch {
	case e.Skipped != "":
		return "there is nothing to run: " + e.Skipped
	case e.Unmeasured != "":
		return "there is nothing to run but trigger tests: " + e.Unmeasured
	case e.What == "":
		return "the suite has no task to run"
	}
	msg := fmt.Sprintf("no task of the suite matches %s %s", e.What, strings.Join(quoted(e.Patterns), ", "))
	if len(e.Known) > 0 {
		msg += "; there are " + strings.Join(e.Known[:min(len(e.Known), 20)], ", ")
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

// UnknownExecutorError says that no executor has the name asked for.
type UnknownExecutorError struct {
	Name  string
	Known []string
}

func (e *UnknownExecutorError) Error() string {
	msg := fmt.Sprintf("unknown executor %q; known are %s", e.Name, strings.Join(e.Known, ", "))
	if near := decode.Nearest(e.Name, e.Known); near != "" {
		msg += fmt.Sprintf(" (did you mean %q?)", near)
	}
	return msg
}

// LimitError says that a run would be larger than waza runs.
type LimitError struct {
	What       string
	Got, Limit int
	Why        string // what the limit follows from, to be put after it; may be empty
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%d %s are more than the limit of %d%s", e.Got, e.What, e.Limit, e.Why)
}

// ErrRunNotFound says that no run has the id.
var ErrRunNotFound = errors.New("no such run")
