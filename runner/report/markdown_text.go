package report

import (
	"html"
	"strings"
)

// What agents, graders and suites write stands in Markdown as code only: in code no
// character has a meaning, nobody is mentioned, nothing is linked.

// codeCell makes a text code in a cell of a table. Tables are cut into cells before
// anything else is looked at, code included, and the backslash that keeps a bar is
// taken away then.
func codeCell(s string) string { return strings.ReplaceAll(codeSpan(s), "|", `\|`) }

// codeSpan makes a text code within a line.
func codeSpan(s string) string {
	s = Clean(s)
	if strings.TrimSpace(s) == "" {
		return "–"
	}
	fence := strings.Repeat("`", longestRun(s, '`')+1)
	// A blank on each side, which is not shown, where a backtick or a blank would be
	// taken for part of the fence.
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") || strings.HasPrefix(s, " ") && strings.HasSuffix(s, " ") {
		s = " " + s + " "
	}
	return fence + s + fence
}

// codeBlock makes a text of several lines a block of code.
func codeBlock(s string) string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(s, "\n"), "\n") {
		lines = append(lines, strings.TrimRight(Clean(line), " "))
	}
	text := strings.Join(lines, "\n")
	fence := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	return fence + "text\n" + text + "\n" + fence + "\n"
}

// codeHTML makes a text code within HTML.
func codeHTML(s string) string {
	return "<code>" + html.EscapeString(Clean(s)) + "</code>"
}

// longestRun is how often a byte follows itself at most.
func longestRun(s string, b byte) int {
	longest, n := 0, 0
	for i := range len(s) {
		if s[i] != b {
			n = 0
			continue
		}
		n++
		longest = max(longest, n)
	}
	return longest
}
