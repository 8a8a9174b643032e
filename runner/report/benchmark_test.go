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
		return &record.Measure{
			Spread:       record.Spread{Distribution: record.Distribution{N: 3, Mean: mean, Median: mean - 2}, P90: mean + 20, P95: mean + 40},
			MeanInterval: &record.Interval{Low: mean - 1, High: mean + 1},
		}
	}
	c := reporttest.CannedRun()
	cell := &record.Cell{Name: "m-1,context_tokens=5000", Model: "m-1", Params: map[string]any{"context_tokens": 5000}}
	other := &record.Cell{Name: "m-1,context_tokens=0,top_p=1", Model: "m-1", Params: map[string]any{"context_tokens": 0, "top_p": 1}}
	c.Rec.Benchmark = &record.BenchmarkRef{
		Tiers:   []int{5000, 0, 9000},
		Skipped: []record.SkippedCell{{Cell: &record.Cell{Name: "m-`\x1b[31m"}, Reason: "too long"}},
	}
	c.Now.Summary.Groups = []record.GroupResult{
		{Group: cell.Name, CellResult: &record.CellResult{Cell: cell, Benchmark: &record.BenchmarkResult{
			Trials: 3, FirstTokenMS: measure(210), TotalMS: measure(1500), TokensPerSecond: measure(110.5),
			InputTokens: measure(5010), OutputTokens: measure(60), CostUSD: measure(0.0129),
			Note: "not answered and not measured: 2 of 3 trials of long",
		}}},
		{
			Group: other.Name,
			CellResult: &record.CellResult{
				Cell: other,
				Benchmark: &record.BenchmarkResult{
					Trials: 1,
					FirstTokenMS: &record.Measure{
						Spread: record.Spread{Distribution: record.Distribution{N: 1, Mean: 12345, Median: 12345}, P90: 12345, P95: 12345},
					},
				},
			},
		},
		{Group: "none", CellResult: &record.CellResult{Cell: &record.Cell{Name: "none"}}},
	}
	r, err := report.Of(c)
	require.NoError(t, err)
	part := func(text string) string {
		_, text, _ = strings.Cut(text, "Speed: time")
		text, _, _ = strings.Cut(text, "too long")
		return "Speed: time" + text
	}
	require.Equal(t, `Speed: time to the first token, in percentiles of trials
Model                         Context  Trials  p50        p90        p95
m-1                           5000     3       208.00 ms  230.00 ms  250.00 ms
m-1,context_tokens=0,top_p=1  0        1       12.3 s     12.3 s     12.3 s

Speed: total time of an answer, in percentiles of trials
Model                         Context  Trials  p50         p90         p95
m-1                           5000     3       1498.00 ms  1520.00 ms  1540.00 ms
m-1,context_tokens=0,top_p=1  0        1       –           –           –

Speed: means over trials, with 95 % intervals
Model                         Context  Mean first token  95 % interval        Mean tokens/s  95 % interval     Mean tokens read  Mean tokens written  Mean cost
m-1                           5000     210.00 ms         [209.00, 211.00] ms  110.50         [109.50, 111.50]  5010              60                   $0.0129
m-1,context_tokens=0,top_p=1  0        12.3 s            –                    –              –                 –                 –                    –
m-1 at 5000: not answered and not measured: 2 of 3 trials of long
Skipped m-`+"`"+`\x1b[31m: `, part(printed(t, r, 0)))
	var b bytes.Buffer
	require.NoError(t, r.Write(&b, report.Options{Width: 70}))
	for line := range strings.Lines(part(b.String())) {
		require.LessOrEqual(t, report.Columns(strings.TrimSuffix(line, "\n")), 70)
	}
	require.Equal(t, 2, strings.Count(b.String(), "p50 "), "a narrow terminal shows all percentiles, of the first token and of the total time")
	require.Regexp(t, `(?m)^m-1 .* 208.00 ms +230.00 ms +250.00 ms$`, b.String())
	require.Regexp(t, `(?m)^m-1 .* 1498.00 ms +1520.00 ms +1540.00 ms$`, b.String())
	b.Reset()
	require.NoError(t, report.WriteMarkdown(&b, c))
	require.Contains(t, b.String(), "| `m-1` | 5000 | 210.00 ms |")
	require.Contains(t, b.String(), "`m-1` at 5000: not answered and not measured: 2 of 3 trials of long")
	require.Contains(t, b.String(), `[31m`)
	require.NotContains(t, b.String(), "\x1b")
}
