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
	// ExcerptBytes is how much of an output or a file a feedback shows.
	ExcerptBytes = 160
)

// Checklist counts checks. The zero value is ready for use.
type Checklist struct {
	Checks    []Check
	Met       int
	Undecided int
	Why       error // why the first undecided check is
}

// NewChecklist returns an empty list with room for n checks.
func NewChecklist(n int) Checklist { return Checklist{Checks: make([]Check, 0, n)} }

// Add counts one check: an empty complaint means that it is met.
func (t *Checklist) Add(check, complaint string) {
	if complaint == "" {
		t.Met++
	}
	t.Checks = append(t.Checks, Check{Check: check, Passed: complaint == "", Detail: complaint})
}

// Presence counts a check that is met by something that was found. When it was not
// found, and cut says that a part is missing where it was looked for, the check is
// undecided.
func (t *Checklist) Presence(check, complaint string, cut error) {
	if complaint != "" && cut != nil {
		t.undecide(check, cut)
		return
	}
	t.Add(check, complaint)
}

// Absence counts a check that is met because something was not found. It is
// undecided when cut says that a part is missing where it was looked for.
func (t *Checklist) Absence(check, complaint string, cut error) {
	if complaint == "" && cut != nil {
		t.undecide(check, cut)
		return
	}
	t.Add(check, complaint)
}

func (t *Checklist) undecide(check string, cut error) {
	if t.Undecided++; t.Why == nil {
		t.Why = fmt.Errorf("%s cannot be decided: %w", check, cut)
	}
	t.Checks = append(t.Checks, Check{Check: check, Detail: fmt.Sprintf("%s cannot be decided: %s", check, cut)})
}

// Result is the score, or the error of a check that is undecided. A check that
// failed for certain decides the verdict; those that are undecided are not met then.
func (t *Checklist) Result() (Score, error) {
	if t.Undecided > 0 && t.Met+t.Undecided == len(t.Checks) {
		return Score{}, t.Why
	}
	return t.Score(), nil
}

// Score is the share of checks met, and passes when all are. A grader that is
// all well has nothing more to say; otherwise the details list every check.
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

// Feedback lists the complaints of the checks that are not met, a line each; the list is bounded.
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

// Excerpt quotes the beginning of a text for a feedback.
func Excerpt(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return "(nothing)"
	}
	return fmt.Sprintf("%q", text.Clip(s, ExcerptBytes))
}
