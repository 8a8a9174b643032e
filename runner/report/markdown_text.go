package report

import (
	"html"
	"strings"
)

//
// Texts of agents, graders and suites appear in Markdown as code only. In code no character has
// a meaning, nobody is mentioned and nothing is linked.

// codeCell formats a text as code in a cell of a table. GitHub splits tables into cells first,
// even within code, and then removes the backslash before a bar.
func codeCell(s string) string { return strings.ReplaceAll(CodeSpan(s), "|", `\|`) }

// CodeSpan formats a text as code within a line of Markdown.
func CodeSpan(s string) string {
	s = Clean(s)
	if strings.TrimSpace(s) == "" {
		return "–"
	}
	fence := strings.Repeat("`", longestRun(s, '`')+1)
	// Add a blank on each side, which is not shown. Otherwise the backtick or blank would be
	// part of the fence.
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") || strings.HasPrefix(s, " ") && strings.HasSuffix(s, " ") {
		s = " " + s + " "
	}
	return fence + s + fence
}

// CodeBlock formats a text of several lines as a block of code in Markdown.
func CodeBlock(s string) string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(s, "\n"), "\n") {
		lines = append(lines, strings.TrimRight(Clean(line), " "))
	}
	text := strings.Join(lines, "\n")
	fence := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	return fence + "text\n" + text + "\n" + fence + "\n"
}

// codeHTML formats a text as code within HTML.
func codeHTML(s string) string {
	return "<code>" + html.EscapeString(Clean(s)) + "</code>"
}

// longestRun returns the length of the longest sequence of a byte.
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
