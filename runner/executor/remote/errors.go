package remote

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"waza/runner/record"
)

// ErrNoServer says that no server of this state directory is running.
var ErrNoServer = errors.New("no waza server is running: start one with waza serve")

// ErrCallerGone is the cause with which a server ends the context of an evaluation whose
// caller's process is gone. The answer is kept for the process that takes the run over;
// answers to evaluations that ended otherwise are dropped.
var ErrCallerGone = errors.New("the process that asked is gone")

// NoToolError says that all agents that are connected have said that they lack a tool.
type NoToolError struct{ Tool string }

func (e *NoToolError) Error() string { return fmt.Sprintf("no agent has the tool %q", e.Tool) }

// EvaluationID is the name of an attempt at a trial, and the same whenever and by
// whichever process it is made: RUN/TASK/TRIAL/ATTEMPT/CONTENT. The last is the start of
// the trial's hash: a run that is resumed with a changed task must not get the answer to
// what the task was before.
func EvaluationID(o *record.Order, attempt int) string {
	return strings.Join([]string{o.RunID, o.TaskID, strconv.Itoa(o.Num), strconv.Itoa(attempt), o.Hash[:min(len(o.Hash), 12)]}, "/")
}
