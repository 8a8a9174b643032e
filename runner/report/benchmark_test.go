package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/report/reporttest"
)

// A benchmark has a table of its measurements, of which narrow terminals show a part, and lists
// the skipped cells.
func TestBenchmark(t *testing.T) {
	t.Parallel()
	measure := func(mean float64) *record.Measure {
		return &record.Measure{Distribution: record.Distribution{N: 3, Mean: mean}, MeanInterval: &record.Interval{Low: mean - 1, High: mean + 1}}
	}
	c := reporttest.CannedRun()
	cell := &record.Cell{Name: "m-1,context_tokens=5000", Model: "m-1", Params: map[string]any{"context_tokens": 5000}}
	other := &record.Cell{Name: "m-1,context_tokens=0,top_p=1", Model: "m-1", Params: map[string]any{"context_tokens": 0, "top_p": 1}}
	c.Rec.Benchmark = &record.BenchmarkRef{Tiers: []int{5000, 0, 9000}, Skipped: []record.SkippedCell{{Cell: &record.Cell{Name: "m-`\x1b[31m"}, Reason: "too long"}}}
	c.Now.Summary.Groups = []record.GroupResult{
		{Group: cell.Name, CellResult: &record.CellResult{Cell: cell, Benchmark: &record.BenchmarkResult{
			Trials: 3, FirstTokenMS: measure(210), TokensPerSecond: measure(110.5), InputTokens: measure(5010), OutputTokens: measure(60), CostUSD: measure(0.0129),
		}}},
		{Group: other.Name, CellResult: &record.CellResult{Cell: other, Benchmark: &record.BenchmarkResult{Trials: 1, FirstTokenMS: &record.Measure{Distribution: record.Distribution{N: 1, Mean: 12345}}}}},
		{Group: "none", CellResult: &record.CellResult{Cell: &record.Cell{Name: "none"}}},
	}
	r, err := report.Of(c)
	require.NoError(t, err)
	part := func(text string) string {
		_, text, _ = strings.Cut(text, "Speed, with")
		text, _, _ = strings.Cut(text, "too long")
		return "Speed, with" + text
	}
	require.Equal(t, `Speed, with 95 % intervals of the means
Model                         Context  Trials  First token  95 % interval        Tokens/s  95 % interval     Tokens read  Tokens written  Cost/trial
m-1                           5000     3       210.00 ms    [209.00, 211.00] ms  110.50    [109.50, 111.50]  5010         60              $0.0129
m-1,context_tokens=0,top_p=1  0        1       12.3 s       –                    –         –                 –            –               –
Skipped m-`+"`"+`\x1b[31m: `, part(printed(t, r, 0)))
	var b bytes.Buffer
	require.NoError(t, r.Write(&b, report.Options{Width: 60}))
	for line := range strings.Lines(part(b.String())) {
		require.LessOrEqual(t, report.Columns(strings.TrimSuffix(line, "\n")), 60)
	}
	require.Contains(t, part(b.String()), "First token  Tokens/s  Cost/trial")
	b.Reset()
	require.NoError(t, report.WriteMarkdown(&b, c))
	require.Contains(t, b.String(), "| `m-1` | 5000 | 3 | 210.00 ms |")
	require.Contains(t, b.String(), `[31m`)
	require.NotContains(t, b.String(), "\x1b")
}
