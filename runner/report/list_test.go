package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTable(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"Suite", "Name", "Executor"}, {"evals/a/eval.yaml", "first\nname", "mock"}, {"漢字", "", "acp"}}
	for _, c := range []struct {
		width int
		want  string
	}{
		{0, `
Suite              Name        Executor
evals/a/eval.yaml  first name  mock
漢字                           acp
`},
		{38, `
Suite              Name   Executor
evals/a/eval.yaml  first  mock
                   name
漢字                      acp
`},
		{30, `
evals/a/eval.yaml
  Name      first name
  Executor  mock
漢字
  Executor  acp
`},
		{18, `
evals/a/eval.yaml
  Name      first
            name
  Executor  mock
漢字
  Executor  acp
`},
	} {
		var b strings.Builder
		require.NoError(t, Table(&b, rows, Options{Width: c.width}))
		require.Equal(t, strings.TrimPrefix(c.want, "\n"), b.String(), "width %d", c.width)
	}
}

// Tables fit terminals of 40 to 200 columns, except for words that are longer than a line. They
// contain every word of every cell.
func TestTableFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(40, 200).Draw(t, "width")
		columns := rapid.IntRange(1, 7).Draw(t, "columns")
		cell := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.StringMatching(`[a-z/漢.-]{1,30}`), 0, 6).Draw(t, "words"), " ")
		})
		head := make([]string, columns)
		for i := range head {
			head[i] = fmt.Sprintf("Head%d", i)
		}
		rows := [][]string{head}
		for range rapid.IntRange(0, 5).Draw(t, "rows") {
			row := make([]string, columns)
			row[0] = strings.ReplaceAll(cell.Draw(t, "key"), " ", "/") + "x"
			for i := range columns - 1 {
				row[i+1] = cell.Draw(t, "cell")
			}
			rows = append(rows, row)
		}
		var b strings.Builder
		require.NoError(t, Table(&b, rows, Options{Width: width}))
		found := map[string]int{}
		for _, word := range strings.Fields(b.String()) {
			found[word]++
		}
		for _, row := range rows[1:] {
			for _, word := range strings.Fields(strings.Join(row, " ")) {
				require.NotZero(t, found[word], "%q is missing in\n%s", word, b.String())
				found[word]--
			}
		}
		for line := range strings.Lines(b.String()) {
			line = strings.TrimRight(line, "\n")
			if Columns(line) > width {
				words := strings.Fields(line)
				require.LessOrEqual(t, len(words), 2, "%d columns of %d: %q", Columns(line), width, line) // a head and one word
			}
		}
	})
}

// Names of tasks and cases are never cut, because people type them.
func TestLongNamesHaveOwnLines(t *testing.T) {
	t.Parallel()
	rows := []row{
		plains("Task", "Verdict", "Trials"), plains("a-task-with-a-very-long-name-indeed", "failed", "1/2"), plains("short", "passed", "2/2"),
	}
	p := printer{Options: Options{Width: 40}}
	p.writeTable(rows)
	require.Equal(t, `Task                     Verdict  Trials
a-task-with-a-very-long-name-indeed
                         failed   1/2
short                    passed   2/2
`, p.String())
}
