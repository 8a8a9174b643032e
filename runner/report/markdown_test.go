package report

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/report/reporttest"
)

func TestMarkdownGolden(t *testing.T) {
	t.Parallel()
	c := reporttest.CannedRun()
	doc := reporttest.Written(t, WriteMarkdown, c)
	reporttest.Golden(t, "summary.md", doc)
	checkMarkdown(t, doc)
	c.Now.Status, c.Now.Error, c.Now.Summary = record.StatusCancelled, "the budget is spent: 0.5 > 0.4 `USD` @all", nil
	reporttest.Golden(t, "summary_cancelled.md", reporttest.Written(t, WriteComment, c))
}

// tableRow splits a row like GitHub: at bars without a backslash before them.
func tableRow(line string) []string {
	line = strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|")
	var cells []string
	start := 0
	for i := range len(line) {
		if line[i] == '|' && (i == 0 || line[i-1] != '\\') {
			cells = append(cells, line[start:i])
			start = i + 1
		}
	}
	cells = append(cells, line[start:])
	for i := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(cells[i], `\|`, "|"))
	}
	return cells
}

// checkMarkdown checks a summary for common faults: rows wider or narrower than their table,
// code blocks without an end, and foreign text outside of code.
func checkMarkdown(t *testing.T, doc string) {
	t.Helper()
	require.True(t, utf8.ValidString(doc))
	fence, width, details := "", 0, 0
	for line := range strings.SplitSeq(doc, "\n") {
		switch {
		case fence != "":
			if line == fence {
				fence = ""
			}
			continue
		case strings.HasPrefix(line, "```"):
			fence = strings.TrimSuffix(line, "text")
			require.Empty(t, strings.Trim(fence, "`"))
			continue
		case strings.HasPrefix(line, "|"):
			n := len(tableRow(line))
			if width == 0 {
				width = n
			}
			require.Equal(t, width, n, line)
		default:
			width = 0
		}
		details += strings.Count(line, "<details>") - strings.Count(line, "</details>")
		rest := regexp.MustCompile("<code>[^<]*</code>").ReplaceAllString(withoutSpans(line), "")
		require.NotContains(t, rest, "@", line)
		require.NotContains(t, rest, "http", line)
	}
	require.Empty(t, fence, "a block of code does not end")
	require.Zero(t, details, "the folded part does not end")
}

// withoutSpans removes code spans from a line, following CommonMark.
func withoutSpans(line string) string {
	var out strings.Builder
	for {
		before, _, after, ok := findSpan(line)
		out.WriteString(before)
		if !ok {
			return out.String()
		}
		line = after
	}
}

// findSpan finds the first code span: a run of backticks, up to the next run of the same length.
func findSpan(line string) (before, code, after string, ok bool) {
	for i := 0; i < len(line); {
		if line[i] != '`' {
			i++
			continue
		}
		n := i
		for n < len(line) && line[n] == '`' {
			n++
		}
		size := n - i
		for j := n; j < len(line); {
			if line[j] != '`' {
				j++
				continue
			}
			k := j
			for k < len(line) && line[k] == '`' {
				k++
			}
			if k-j == size {
				code = line[n:j]
				if strings.HasPrefix(code, " ") && strings.HasSuffix(code, " ") && strings.TrimSpace(code) != "" {
					code = code[1 : len(code)-1]
				}
				return line[:i], code, line[k:], true
			}
			j = k
		}
		i = n
	}
	return line, "", "", false
}

// A summary of many tasks contains as many as fit, each of them complete.
func TestMarkdownIsBounded(t *testing.T) {
	t.Parallel()
	c := &reporttest.Canned{
		Rec: &record.Run{RunID: "r", Suite: record.SuiteRef{Name: "many"}},
		Now: record.Progress{Status: record.StatusCompleted, Summary: reporttest.Summary()},
	}
	for i := range 600 {
		v, g := record.Passed, record.Grade{Name: "g", Type: "text", Weight: 1, Score: 1, Passed: true}
		if i%2 == 0 {
			v, g = record.Failed, record.Grade{
				Name: "g", Type: "text", Weight: 1,
				Feedback: strings.Repeat(fmt.Sprintf("line of task %d ```\n", i), 300),
			}
		}
		c.AddTask(fmt.Sprintf("task-%04d", i), record.RoleTask, v, c.Graded(v, g))
	}
	for _, limit := range []int{0, 100, 600, 10_000, MaxComment, MaxMarkdown} {
		var b bytes.Buffer
		require.NoError(t, Markdown(&b, c, limit))
		require.LessOrEqual(t, b.Len(), limit)
		if limit >= 600 {
			require.Contains(t, b.String(), "omitted because there is no room; see run `r` for everything")
			checkMarkdown(t, b.String())
		}
		if limit >= MaxComment {
			require.Contains(t, b.String(), "<summary>❌ <code>task-0000</code>: passed 0/1</summary>")
			require.Contains(t, b.String(), "300 tasks passed and are not listed.")
			require.Greater(t, b.Len(), limit*9/10, "more would have fitted")
		}
	}
}

// A cell can contain a bar like any other text.
func TestCodeCell(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a": "`a`", "a|b": "`a\\|b`", "`": "`` ` ``", "a``b": "```a``b```", "": "–", "  ": "–", " a ": "`  a  `",
		"x\ny": "`x y`", "\x1b": "`\\x1b`",
	} {
		require.Equal(t, want, codeCell(in), "%q", in)
	}
}

func FuzzMarkdownText(f *testing.F) {
	f.Add("a|b\\|`c`` @me http://x <b> \n```\n</details>\x00\xff")
	f.Fuzz(func(t *testing.T, s string) {
		want := Clean(s)
		if strings.TrimSpace(want) == "" {
			return
		}
		before, code, after, ok := findSpan(CodeSpan(s))
		require.True(t, ok)
		require.Empty(t, before+after)
		require.Equal(t, want, code)

		cells := tableRow("| " + codeCell(s) + " | end |")
		require.Len(t, cells, 2)
		_, code, after, ok = findSpan(cells[0])
		require.True(t, ok)
		require.Empty(t, after)
		require.Equal(t, want, code)

		lines := strings.Split(strings.TrimSuffix(CodeBlock(s), "\n"), "\n")
		fence := lines[len(lines)-1]
		require.Equal(t, fence+"text", lines[0])
		for _, line := range lines[1 : len(lines)-1] {
			require.False(t, strings.HasPrefix(strings.TrimLeft(line, " "), fence), "%q ends the block", line)
		}

		inner := strings.TrimSuffix(strings.TrimPrefix(codeHTML(s), "<code>"), "</code>")
		require.NotContains(t, inner, "<")
		require.NotContains(t, inner, "\n")
	})
}
