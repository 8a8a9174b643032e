package report_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/report/reporttest"
)

// routingOf returns the report's section about the routing.
func routingOf(t *testing.T, c *reporttest.Canned, width int) string {
	t.Helper()
	r, err := report.Of(c)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, r.Write(&b, report.Options{Width: width}))
	_, text, _ := strings.Cut(b.String(), "\nRouting, ")
	text, _, _ = strings.Cut(text, "\n\n2 of")
	return text
}

// Shares of trials count as weights, hostile texts of clients are harmless, and long lists are
// cut.
func TestRouting(t *testing.T) {
	t.Parallel()
	half, third := reporttest.Share(0.5), reporttest.Share(1.0/3)
	c := reporttest.CannedRun()
	c.Now.Summary.Routing = &record.RoutingResult{
		Tasks: 2, Trials: 6, Errors: 1, Timeouts: 2, Rerouted: 1, Accuracy: half, AccuracyInterval: &record.Interval{Low: 0.1, High: 0.9},
		ClientMatches: record.ClientMatches{TruePositives: 2.0 / 3, FalsePositives: 1, FalseNegatives: 1.0 / 3, Precision: half, Recall: third},
		Clients: []record.ClientResult{
			{Client: "a|`\x1b[31m", ClientMatches: record.ClientMatches{TruePositives: 2.0 / 3, FalseNegatives: 1.0 / 3, Precision: half}},
		},
		Confusion: []record.ConfusionCell{
			{Expected: []string{"a"}, Took: []string{}, Weight: 1.0 / 3, Trials: 1},
			{Expected: []string{"a"}, Took: []string{"a"}, Weight: 1},
			{Expected: []string{}, Took: []string{"a", "b"}, Weight: 0.001},
		},
		Misroutes: []record.Misroute{
			{TaskID: "x", TrialNum: 3, Expected: []string{"a"}, Took: []string{}, Rejected: []string{"b"}, Reason: "<b>\x1b[31m\nsecond"},
		},
	}
	want := `over 2 tasks: accuracy 50 % (10–90 %), 1 trial rerouted, 1 trial in error, 2 trials timed out
Client       Expected  Took  Right  Precision  Recall  F1
a|` + "`" + `\x1b[31m  1         0.67  0.67   0.50       –       –
all          1         1.67  0.67   0.50       0.33    –

Expected \ took  a  a + b  nobody
a                1  ·      0.33
nobody           ·  0.001  ·

1 misroute
x, trial 3: expected a, taken by nobody, rejected by b: <b>\x1b[31m`
	require.Equal(t, want, routingOf(t, c, 0))
	for line := range strings.Lines(routingOf(t, c, 48)) {
		if strings.HasPrefix(line, "Client") {
			require.Equal(t, "Client       Expected  Precision  Recall  F1\n", line)
		}
	}
	var b bytes.Buffer
	require.NoError(t, report.WriteMarkdown(&b, c))
	require.Contains(t, b.String(), "**Routing, over 2 tasks: accuracy 50 % (10–90 %), 1 trial rerouted")
	require.Contains(t, b.String(), "| `nobody` | · | **0.001** | · |")
	require.Contains(t, b.String(), "- `x`, trial 3: expected `a`, taken by `nobody`, rejected by `b`: `<b>")
	require.NotContains(t, b.String(), "\x1b")

	r := c.Now.Summary.Routing
	for i := range 60 {
		r.Misroutes = append(r.Misroutes, record.Misroute{TaskID: fmt.Sprint(i)})
	}
	for i := range 20 {
		r.Confusion = append(r.Confusion, record.ConfusionCell{Took: []string{fmt.Sprint(i)}})
	}
	r.MisroutesDropped = 5
	text := routingOf(t, c, 0)
	require.Contains(t, text, "The confusion matrix is too large to show, see run.result\n\n66 misroutes\n")
	require.True(t, strings.HasSuffix(text, "\nand 16 more"), text)

	c.Now.Summary.Routing = &record.RoutingResult{Errors: 2}
	require.Contains(t, "\n"+routingText(t, c), "\nRouting, not measured: no trial was answered, 2 trials in error\n")
}

func routingText(t *testing.T, c *reporttest.Canned) string {
	t.Helper()
	r, err := report.Of(c)
	require.NoError(t, err)
	return printed(t, r, 0)
}
