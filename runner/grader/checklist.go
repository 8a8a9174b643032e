package grader

import (
	"fmt"
	"slices"
	"strings"

	"waza/eval/text"
)

const (
	// maxComplaints is the maximum number of lines of a feedback.
	maxComplaints = 10
	// ExcerptBytes is the maximum number of bytes that a feedback quotes of an output or a file.
	ExcerptBytes = 160
)

// A Checklist counts checks. Its zero value is ready for use.
type Checklist struct {
	Checks    []Check
	Met       int
	Undecided int
	Reason    error // why the first undecided check could not be decided
}

// NewChecklist returns an empty list with room for n checks.
func NewChecklist(n int) Checklist { return Checklist{Checks: make([]Check, 0, n)} }

// Add counts one check. The check is met if complaint is empty.
func (t *Checklist) Add(check, complaint string) {
	if complaint == "" {
		t.Met++
	}
	t.Checks = append(t.Checks, Check{Check: check, Passed: complaint == "", Detail: complaint})
}

// Presence counts a check that is met if something was found; complaint is then empty. If
// nothing was found and cut is not nil, part of the searched data is missing, and the check is
// undecided.
func (t *Checklist) Presence(check, complaint string, cut error) {
	if complaint != "" && cut != nil {
		t.undecide(check, cut)
		return
	}
	t.Add(check, complaint)
}

// Absence counts a check that is met if nothing was found; complaint is then empty. If nothing
// was found and cut is not nil, part of the searched data is missing, and the check is
// undecided.
func (t *Checklist) Absence(check, complaint string, cut error) {
	if complaint == "" && cut != nil {
		t.undecide(check, cut)
		return
	}
	t.Add(check, complaint)
}

func (t *Checklist) undecide(check string, cut error) {
	if t.Undecided++; t.Reason == nil {
		t.Reason = fmt.Errorf("%s cannot be decided: %w", check, cut)
	}
	t.Checks = append(t.Checks, Check{Check: check, Detail: fmt.Sprintf("%s cannot be decided: %s", check, cut)})
}

// Result returns the score, or an error if the verdict depends on an undecided check. A failed
// check decides the verdict; undecided checks then count as not met.
func (t *Checklist) Result() (Score, error) {
	if t.Undecided > 0 && t.Met+t.Undecided == len(t.Checks) {
		return Score{}, t.Reason
	}
	return t.Score(), nil
}

// Score returns the share of checks met; it passes if all are. Only a score below 1 has a
// feedback, and its details list every check.
func (t *Checklist) Score() Score {
	if len(t.Checks) == 0 {
		return Score{Feedback: "nothing was checked"}
	}
	if t.Met == len(t.Checks) {
		return Score{Score: 1, Passed: true}
	}
	return Score{
		Score:    float64(t.Met) / float64(len(t.Checks)),
		Feedback: t.Feedback(),
		Details:  t.Checks,
	}
}

// Feedback lists the complaints of the checks that are not met, one per line and at most
// maxComplaints of them.
func (t *Checklist) Feedback() string {
	var lines []string
	for _, c := range t.Checks {
		if !c.Passed && !slices.Contains(lines, c.Detail) {
			lines = append(lines, c.Detail)
		}
	}
	if n := len(lines) - maxComplaints; n > 0 {
		lines = append(lines[:maxComplaints], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(lines, "\n")
}

// Excerpt quotes the start of a text for a feedback.
func Excerpt(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return "(nothing)"
	}
	return fmt.Sprintf("%q", text.Clip(s, ExcerptBytes))
}
