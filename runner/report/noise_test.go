package report_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/report/reporttest"
)

// Reports state the conditions with which failures go. Conditions of later versions keep their names.
func TestNoiseInReports(t *testing.T) {
	t.Parallel()
	with, without := 0.4, 0.71
	c := reporttest.CannedRun()
	c.Now.Summary.Noise = []record.NoiseResult{
		{Condition: record.ConditionThrottled, Verdict: record.Failed, P: 0.003, Trials: 100, With: &with, Without: &without},
		{Condition: "heat\x1b[31m", Verdict: record.Errored, P: 0.02, Trials: 100},
	}
	first := "Failures go with throttling: of the trials with throttled requests, 40 % passed, of the others 71 %, within tasks (p 0.003). " +
		"This can also come from what these agents did. To check, run again with fewer workers"
	for name, write := range map[string]func(b *strings.Builder) error{
		"text": func(b *strings.Builder) error {
			r, err := report.Of(c)
			require.NoError(t, err)
			return r.Write(b, report.Options{})
		},
		"Markdown": func(b *strings.Builder) error { return report.Markdown(b, c, 1<<20) },
	} {
		var b strings.Builder
		require.NoError(t, write(&b), name)
		text := strings.ReplaceAll(b.String(), "\u00a0", " ")
		require.Contains(t, text, first, name)
		require.Contains(t, text, "Errors go with heat", name)
		require.NotContains(t, text, "\x1b[31m", name)
	}
}
