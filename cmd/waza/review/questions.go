package review

import (
	"cmp"
	"fmt"
	"slices"

	"waza/runner"
	"waza/runner/regrade"
)

// selection holds the flags of one call, which select the questions.
type selection struct {
	Run      string // empty for the newest that waits
	Task     string
	Trial    int // 0 for all
	Grader   string
	All      bool
	Reviewer string
	JSON     bool
	// Drawn selects the questions about trials that were drawn for the calibration of Grader.
	Drawn bool
}

// questions returns the questions of a run that the flags select.
func (s selection) questions(rn *runner.Runner) ([]regrade.Question, error) {
	list, err := rn.Amender().Questions(s.Run)
	var out []regrade.Question
	for _, q := range list {
		if (s.All || q.Pending) && (s.Task == "" || s.Task == q.TaskID) && (s.Trial == 0 || s.Trial == q.Trial) &&
			s.about(&q) {
			out = append(out, q)
		}
	}
	slices.SortStableFunc(out, func(a, b regrade.Question) int { return cmp.Compare(a.Place, b.Place) })
	return out, err
}

// about reports whether a question is one of the selected grader. The questions about drawn trials
// are also those of the judge.
func (s selection) about(q *regrade.Question) bool {
	if q.Place > 0 && s.Grader == q.Calibrates {
		return true
	}
	return !s.Drawn && (s.Grader == "" || s.Grader == q.Grader)
}

// findRun selects the newest run of this project that waits if none is named. It leaves the run
// empty if none waits.
func (s *selection) findRun(rn *runner.Runner) error {
	if s.Run != "" {
		return nil
	}
	var err error
	s.Run, err = rn.Amender().NewestPending(".")
	return err
}

// nothingWaits returns the message that no question matches.
func (s selection) nothingWaits() string {
	switch {
	case s.Run == "":
		return "no run of this project waits for review"
	case s.Task != "" || s.Trial > 0 || s.Grader != "":
		return fmt.Sprintf("no matching question waits for review in run %s (--all includes answered ones)", s.Run)
	}
	return fmt.Sprintf("nothing waits for review in run %s (--all includes answered questions)", s.Run)
}
