package skills

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"waza/eval/skill"
	"waza/runner/readiness"
)

// canned returns the description with one more sentence, which improves it by the criteria of
// waza check. ok is false if nothing can be added.
func canned(s *skill.Skill) (description string, ok bool) {
	words := strings.ReplaceAll(s.Title(), "-", " ")
	add := ""
	switch readiness.FirstFix(s) {
	case readiness.FixLength:
		add = fmt.Sprintf("It gives instructions for %s: the requirements, the steps in their order, and how to check "+
			"that the result is right before it is delivered.",
			words)
		if strings.Contains(s.Description, add) {
			add = "It says what to do when something goes wrong."
		}
	case readiness.FixTriggers:
		add = fmt.Sprintf("USE FOR: %s, help with %s, questions about %s.", words, words, words)
	case readiness.FixAntiTriggers:
		add = fmt.Sprintf("DO NOT USE FOR: general questions, tasks that have nothing to do with %s.", words)
	case readiness.FixRouting:
		add = "FOR SINGLE OPERATIONS: use the agent's own tools directly."
	case readiness.FixNothing:
		return "", false
	}
	description = strings.Join(strings.Fields(s.Description), " ")
	if description != "" && !strings.HasSuffix(description, ".") {
		description += "."
	}
	description = strings.TrimSpace(description + " " + add)
	return description, utf8.RuneCountInString(description) <= maxDescription
}

// maxDescription is the limit of the specification, in characters.
const maxDescription = 1024

// diff returns a change as a patch with one hunk and no context.
func diff(name string, before, after []byte) string {
	a, b := strings.Split(string(before), "\n"), strings.Split(string(after), "\n")
	from := 0
	for from < len(a) && from < len(b) && a[from] == b[from] {
		from++
	}
	end := 0
	for end < len(a)-from && end < len(b)-from && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	a, b = a[from:len(a)-end], b[from:len(b)-end]
	var out strings.Builder
	fmt.Fprintf(&out, "--- a/%s\n+++ b/%s\n@@ -%d,%d +%d,%d @@\n", name, name, from+1, len(a), from+1, len(b))
	for _, line := range a {
		fmt.Fprintf(&out, "-%s\n", strings.TrimSuffix(line, "\r"))
	}
	for _, line := range b {
		fmt.Fprintf(&out, "+%s\n", strings.TrimSuffix(line, "\r"))
	}
	return out.String()
}
