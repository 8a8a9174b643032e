package grader

import (
	"fmt"
	"slices"
	"strings"

	"waza/eval/text"
)

const (
	// maxComplaints bounds the lines of a feedback.
	maxComplaints = 10
	// excerptBytes is how much of an output or a file a feedback shows.
	excerptBytes = 160
)

// tally counts checks. The zero value is ready for use.
type tally struct {
	checks    []Check
	met       int
	undecided int
	why       error // why the first undecided check is
}

func newTally(n int) tally { return tally{checks: make([]Check, 0, n)} }

// add counts one check: an empty complaint means that it is met.
func (t *tally) add(check, complaint string) {
	if complaint == "" {
		t.met++
	}
	t.checks = append(t.checks, Check{Check: check, Passed: complaint == "", Detail: complaint})
}

// presence counts a check that is met by something that was found. When it was not
// found, and cut says that a part is missing where it was looked for, the check is
// undecided.
func (t *tally) presence(check, complaint string, cut error) {
	if complaint != "" && cut != nil {
		t.undecide(check, cut)
		return
	}
	t.add(check, complaint)
}

// absence counts a check that is met because something was not found. It is
// undecided when cut says that a part is missing where it was looked for.
func (t *tally) absence(check, complaint string, cut error) {
	if complaint == "" && cut != nil {
		t.undecide(check, cut)
		return
	}
	t.add(check, complaint)
}

func (t *tally) undecide(check string, cut error) {
	if t.undecided++; t.why == nil {
		t.why = fmt.Errorf("%s cannot be decided: %w", check, cut)
	}
	t.checks = append(t.checks, Check{Check: check, Detail: fmt.Sprintf("%s cannot be decided: %s", check, cut)})
}

// result is the score, or the error of a check that is undecided. A check that
// failed for certain decides the verdict; those that are undecided are not met then.
func (t *tally) result() (Score, error) {
	if t.undecided > 0 && t.met+t.undecided == len(t.checks) {
		return Score{}, t.why
	}
	return t.score(), nil
}

// score is the share of checks met, and passes when all are. A grader that is
// all well has nothing more to say; otherwise the details list every check.
func (t *tally) score() Score {
	if len(t.checks) == 0 {
		return Score{Feedback: "nothing was checked"}
	}
	if t.met == len(t.checks) {
		return Score{Score: 1, Passed: true}
	}
	return Score{
		Score:    float64(t.met) / float64(len(t.checks)),
		Feedback: t.feedback(),
		Details:  t.checks,
	}
}

func (t *tally) feedback() string {
	var lines []string
	for _, c := range t.checks {
		if !c.Passed && !slices.Contains(lines, c.Detail) {
			lines = append(lines, c.Detail)
		}
	}
	if n := len(lines) - maxComplaints; n > 0 {
		lines = append(lines[:maxComplaints], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(lines, "\n")
}

// excerpt quotes the beginning of a text for a feedback.
func excerpt(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return "(nothing)"
	}
	return fmt.Sprintf("%q", text.Clip(s, excerptBytes))
}
