package executor

import (
	"strconv"
	"strings"

	"waza/runner/record"
)

// AttemptID returns the name of an attempt at a trial: RUN/TASK/TRIAL/ATTEMPT/CONTENT. Every
// process computes the same name. CONTENT is the start of the trial's hash, so that a run that
// is resumed with a changed task does not get an answer to the earlier version of the task.
func AttemptID(o *record.Order, attempt int) string {
	return strings.Join([]string{o.RunID, o.TaskID, strconv.Itoa(o.Num), strconv.Itoa(attempt), o.Hash[:min(len(o.Hash), 12)]}, "/")
}
