// Package review asks people for the scores that runs wait for. Call [Ask] on a
// terminal; [Options.Questions] lists what would be asked.
package review

import (
	"fmt"

	"waza/runner"
	"waza/runner/regrade"
)

// Options are the flags of waza review.
type Options struct {
	Run      string // empty for the newest that waits
	Task     string
	Trial    int // 0 for all
	Grader   string
	All      bool
	Reviewer string
	JSON     bool
}

// Questions are those of a run that the flags ask for.
func (o Options) Questions(rn *runner.Runner) ([]regrade.Question, error) {
	list, err := rn.Amender().Questions(o.Run)
	var out []regrade.Question
	for _, q := range list {
		if (o.All || q.Pending) && (o.Task == "" || o.Task == q.TaskID) && (o.Trial == 0 || o.Trial == q.Trial) && (o.Grader == "" || o.Grader == q.Grader) {
			out = append(out, q)
		}
	}
	return out, err
}

// FindRun sets the run when none is named. There may be none that waits.
func (o *Options) FindRun(rn *runner.Runner) error {
	if o.Run != "" {
		return nil
	}
	var err error
	o.Run, err = rn.Amender().NewestPending()
	return err
}

// NothingWaits says that there is no question that the options ask for.
func NothingWaits(o Options) string {
	switch {
	case o.Run == "":
		return "no run waits for review"
	case o.Task != "" || o.Trial > 0 || o.Grader != "":
		return fmt.Sprintf("nothing that is asked for waits for review in run %s (--all shows what has its score)", o.Run)
	}
	return fmt.Sprintf("nothing waits for review in run %s (--all shows what has its score)", o.Run)
}
