// Package review asks people for the scores that runs wait for. Call [Ask] on a terminal;
// [Options.Questions] lists the questions without asking.
package review

import (
	"fmt"

	"waza/runner"
	"waza/runner/regrade"
)

// Options holds the flags of waza review.
type Options struct {
	Run      string // empty for the newest that waits
	Task     string
	Trial    int // 0 for all
	Grader   string
	All      bool
	Reviewer string
	JSON     bool
}

// Questions returns the questions of a run that the flags select.
func (o Options) Questions(rn *runner.Runner) ([]regrade.Question, error) {
	list, err := rn.Amender().Questions(o.Run)
	var out []regrade.Question
	for _, q := range list {
		if (o.All || q.Pending) && (o.Task == "" || o.Task == q.TaskID) && (o.Trial == 0 || o.Trial == q.Trial) &&
			(o.Grader == "" || o.Grader == q.Grader) {
			out = append(out, q)
		}
	}
	return out, err
}

// FindRun selects the newest run of this project that waits if none is named. It leaves the run
// empty if none waits.
func (o *Options) FindRun(rn *runner.Runner) error {
	if o.Run != "" {
		return nil
	}
	var err error
	o.Run, err = rn.Amender().NewestPending(".")
	return err
}

// NothingWaits returns the message that no question matches the options.
func NothingWaits(o Options) string {
	switch {
	case o.Run == "":
		return "no run of this project waits for review"
	case o.Task != "" || o.Trial > 0 || o.Grader != "":
		return fmt.Sprintf("no matching question waits for review in run %s (--all includes answered ones)", o.Run)
	}
	return fmt.Sprintf("nothing waits for review in run %s (--all includes answered questions)", o.Run)
}
