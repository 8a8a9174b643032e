package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/decode"
	"waza/runner/report/reporttest"
)

func TestDiagnosticsLookLikeCompilerOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
		return path
	}
	long := "# " + strings.Repeat("aäö ", 60) + "HERE " + strings.Repeat("b", 200)
	suite := file("eval.yaml", "\ufeffname: demo\r\nconfig:\r\n  trials_per_tsk: 3\n\tname: \"漢字\" # tabs\n"+long+"\n"+"last: \x1b[31m")
	binary := file("binary.yaml", "a\xffb")
	d := func(f string, line, col, end int, s decode.Severity, code decode.Code, msg, suggestion string) decode.Diagnostic {
		return decode.Diagnostic{File: f, Line: line, Column: col, EndColumn: end, Severity: s, Code: code, Message: msg, Suggestion: suggestion}
	}
	ds := decode.Diagnostics{
		d(suite, 0, 0, 0, decode.Error, "empty-document", "about the whole file", ""),
		d(suite, 1, 1, 5, decode.Info, "no-effect", "the byte order mark does not count", ""),
		d(suite, 3, 3, 17, decode.Warning, "unknown-key", `unknown key "trials_per_tsk"`, "trials_per_task"),
		d(suite, 4, 8, 12, decode.Error, "wrong-type", "wide characters after a tab", ""),
		d(suite, 5, 243, 247, decode.Error, "syntax", "far out on the line", ""),
		d(suite, 3, 20, 0, decode.Error, "syntax", "at the end of the line", ""),
		d(suite, 3, 900, 0, decode.Error, "syntax", "beyond the end of the line", ""),
		d(suite, 6, 7, 8, decode.Error, "not-text", "a \x1b[0m of the suite's own", ""),
		d(suite, 99, 1, 0, decode.Error, "syntax", "no such line", "mend it"),
		d(binary, 1, 2, 0, decode.Error, "not-text", "no text to show", ""),
		d(filepath.Join(dir, "gone.yaml"), 1, 1, 0, decode.Error, "missing-file", "nothing to show", ""),
		d(dir, 1, 1, 0, decode.Error, "unreadable-file", "a directory", ""),
	}
	var b strings.Builder
	require.NoError(t, Diagnostics(&b, ds, Options{Width: 100}))
	got := strings.ReplaceAll(b.String(), dir+string(filepath.Separator), "")
	reporttest.Golden(t, "diagnostics.txt", strings.ReplaceAll(got, dir, "DIR"))
	require.Equal(t, "10 errors, 1 warning, 1 remark", DiagnosticsSummary(ds))
	require.Empty(t, DiagnosticsSummary(nil))
}

func TestDiagnosticsInColour(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "eval.yaml")
	require.NoError(t, os.WriteFile(path, []byte("nme: x\n"), 0o644))
	var b strings.Builder
	ds := decode.Diagnostics{{File: path, Line: 1, Column: 1, EndColumn: 4, Severity: decode.Error, Code: "unknown-key", Message: "m"}}
	require.NoError(t, Diagnostics(&b, ds, Options{Color: true}))
	require.Contains(t, b.String(), "\x1b[31merror\x1b[0m")
	require.Contains(t, b.String(), "\x1b[31m^~~\x1b[0m")
}

func TestExcerptKeepsTheCaretInSight(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("0123456789", 30)
	for column := 1; column <= len(line)+1; column++ {
		shown, mark := excerpt(line, column, column+4, 50)
		require.LessOrEqual(t, Columns(shown), 50)
		at := strings.IndexByte(mark, '^')
		require.GreaterOrEqual(t, at, 0)
		if column <= len(line) {
			require.Equal(t, string(line[column-1]), string([]rune(shown)[at]), "column %d of %q", column, shown)
		}
	}
}

// A suite on one line of a megabyte with 2,000 findings took minutes, because the whole line was
// examined for each.
func TestExcerptOfALongLine(t *testing.T) {
	t.Parallel()
	const length = 30_000
	var b strings.Builder
	for i := range length {
		b.WriteRune([]rune("abcdeféghijklmnopqrstuvwxyz")[i*i%27])
	}
	line := []rune(b.String())
	for _, column := range []int{0, 1, 2, 100, nearBytes, nearBytes + 1, 3 * nearBytes, 20_000, length - 100, length - 1, length, length + 1, length + 9} {
		shown, mark := excerpt(string(line), column, column+3, 60)
		caret := strings.Index(mark, "^")
		require.LessOrEqual(t, len([]rune(shown)), 61, "%d", column)
		require.Equal(t, column > 50, strings.HasPrefix(shown, "…"), "%d: %s", column, shown)
		require.Equal(t, column < length-50, strings.HasSuffix(shown, "…"), "%d: %s", column, shown)
		if column > length {
			require.True(t, strings.HasSuffix(shown, string(line[length-20:])), "%d: %s", column, shown)
			require.Equal(t, len([]rune(shown)), caret, "%d", column)
			continue
		}
		start := max(column-1, 0)
		next := min(start+3, length)
		require.Equal(t, string(line[start:next]), string([]rune(shown)[caret:caret+next-start]), "%d", column)
	}
}
