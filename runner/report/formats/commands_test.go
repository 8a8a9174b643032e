package formats_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/report/formats"
	"waza/runner/report/reporttest"
)

// attacked returns a run whose task ids and whose agent contain commands.
func attacked() record.Handle {
	c := reporttest.CannedRun()
	for i := range c.Rec.Tasks {
		c.Rec.Tasks[i].ID = "::set-output name=id" + string(rune('a'+i)) + "::" + c.Rec.Tasks[i].ID
		c.Rec.Tasks[i].Name = "##[group]" + c.Rec.Tasks[i].Name
	}
	for i, trials := range c.Done {
		for _, trial := range trials {
			trial.TaskID = c.Rec.Tasks[i].ID
			trial.Output, trial.Error = reporttest.Attack, reporttest.Attack
			for j := range trial.Graders {
				trial.Graders[j].Feedback = reporttest.Attack
			}
		}
	}
	for _, res := range c.Ended {
		if res != nil {
			res.Reasons = []record.Reason{
				{Verdict: record.Failed, Grader: "::error::g", Message: reporttest.Attack, Trials: 1},
				{Verdict: record.Errored, Message: reporttest.Attack, Trials: 1},
			}
		}
	}
	return c
}

// Further lines of an agent's output once started lines of the table and of exports, and so did
// task ids. CI systems run commands at the start of a line.
func TestAttackNothingIsACommandOfCI(t *testing.T) {
	t.Parallel()
	h := attacked()
	for _, f := range formats.Formats() {
		require.Empty(t, reporttest.Commands(written(t, f, h)), f.Name)
	}
	rep, err := report.Of(h)
	require.NoError(t, err)
	for _, width := range []int{0, 40, 80, 200} {
		var b bytes.Buffer
		require.NoError(t, rep.Write(&b, report.Options{Width: width}))
		require.Empty(t, reporttest.Commands(b.String()), "%d columns", width)
		for line := range strings.Lines(b.String()) {
			require.False(t, strings.HasPrefix(strings.TrimSpace(line), "passed     9/9"),
				"a line of the agent looks like a line of the report: %q", line)
		}
	}
	for _, e := range []*record.Event{
		{Type: record.TaskComplete, TaskID: "::set-output name=x::y", Verdict: record.Passed},
	} {
		require.Empty(t, reporttest.Commands(report.Line(e, report.Options{})))
	}
	var b bytes.Buffer
	require.NoError(t, report.Table(&b,
		[][]string{{"Task"}, {"::set-output name=x::y"}, {"", "::add-mask::z"}, {"a ##[group]"}},
		report.Options{}))
	require.Empty(t, reporttest.Commands(b.String()))
}
