package spreadsheet

import (
	"encoding/csv"
	"strings"
	"testing"
	"unicode/utf8"
	"waza/runner/report/reporttest"

	"github.com/stretchr/testify/require"
)

func TestCSVGolden(t *testing.T) {
	t.Parallel()
	doc := reporttest.Written(t, Write, reporttest.CannedRun())
	reporttest.Golden(t, "trials.csv", doc)
	rows, err := csv.NewReader(strings.NewReader(doc)).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+15)
	for i, c := range Columns() {
		require.Equal(t, c.Name, rows[0][i])
		require.Regexp(t, `^[a-z_]+$`, c.Name)
		require.Regexp(t, `\.$`, c.Doc)
	}
	require.Equal(t, strings.Count(doc, "\n"), strings.Count(doc, "\r\n"), "lines end as RFC 4180 has it")
}

func TestCSVCell(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "plain": "plain", "a=b": "a=b", "0.5": "0.5", "a#b": "a#b", "a##[b]": `a#\x23[b]`, "a\n::b": "a\n\\x3a:b", "a\x7f": "a�",
		"_":    "_",
		"=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\tx": "'\tx", "\rx": "'\nx", "＝1": "'＝1",
		"a\r\nb\rc": "a\nb\nc", "\xff\x00": "��",
	} {
		require.Equal(t, want, cell(in), "%q", in)
	}
	require.Equal(t, "' =1", cell(" =1"))
}

// Reading a cell returns the written text, and no cell is a formula.
func FuzzCSVCell(f *testing.F) {
	f.Add("=cmd|' /C calc'!A0", "a,b\"c\"\r\n;\xff")
	f.Fuzz(func(t *testing.T, a, b string) {
		var doc strings.Builder
		w := csv.NewWriter(&doc)
		w.UseCRLF = true
		row := []string{cell(a), cell(b), "end"}
		require.NoError(t, w.Write(row))
		w.Flush()
		require.True(t, utf8.ValidString(doc.String()))
		rows, err := csv.NewReader(strings.NewReader(doc.String())).ReadAll()
		require.NoError(t, err)
		require.Equal(t, [][]string{row}, rows)
		for _, cell := range row {
			require.NotRegexp(t, "^[ ]*[=+\\-@\t\r\n]", cell)
		}
	})
}
