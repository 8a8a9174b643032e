package plugineval

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/report/reporttest"
)

func documentIn(t *testing.T, h record.Handle) (doc document) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(reporttest.Written(t, Write, h)), &doc))
	return doc
}

func TestGolden(t *testing.T) {
	t.Parallel()
	doc := reporttest.Written(t, Write, reporttest.CannedRun())
	reporttest.Golden(t, "aggregate-result.json", doc)
	require.NotContains(t, doc, "should_trigger")
}

// passes returns a grade with a weight.
func passes(name string, passed bool, weight float64) record.Grade {
	g := record.Grade{Name: name, Type: "text", Passed: passed, Weight: weight}
	if passed {
		g.Score = 1
	}
	return g
}

// A case has the mean of its runs, each the weighted share of graders that passed. Two votes of three pass,
// and graders that do not count are shown in the arm with the plugin alone.
func TestScores(t *testing.T) {
	t.Parallel()
	c := &reporttest.Canned{Rec: &record.Run{RunID: "r", Suite: record.SuiteRef{Name: "p", Version: "1.2.0"}, Baseline: &record.BaselineRef{}}}
	c.Now = record.Progress{Status: record.StatusCompleted, Summary: &record.Summary{}}
	used := passes("used", false, 1)
	used.Optional = true
	votes := func(first, second, third bool) []record.Grade {
		grades := []record.Grade{passes("vote 1", first, 1), passes("vote 2", second, 1), passes("vote 3", third, 1)}
		for i := range grades {
			grades[i].Group = &record.GradeGroup{Name: "judged", Weight: 2, Threshold: new(0.66)}
		}
		return grades
	}
	limits := passes("limits", false, 1)
	limits.AfterTurn, limits.Feedback = 1, "11 turns, at most 10"
	c.AddTask("a", record.RoleTask, record.Failed,
		c.Graded(record.Passed, append(votes(true, false, true), passes("text", true, 1), used)...),
		c.Graded(record.Failed, append(votes(false, false, true), passes("text", true, 1), used, limits)...),
		c.Ungraded(record.Errored, "no network"),
		c.Ungraded(record.Skipped, "not started"),
	)
	c.AddTask("a#baseline", record.RoleBaseline, record.Failed,
		c.Graded(record.Failed, append(votes(false, false, false), passes("text", true, 1), used)...))
	c.Rec.Tasks[1].Of = "a"
	c.AddTask("b", record.RoleTask, record.Passed, c.Graded(record.Passed, passes("text", true, 1)))
	doc := documentIn(t, c)

	require.Equal(t, []plugin{{"p", "1.2.0"}}, doc.Suite.Plugins)
	require.Equal(t, "with-without", doc.Suite.Ablation)
	require.Len(t, doc.Cases, 2)
	a := doc.Cases[0]
	require.Equal(t, []graderSpec{{"judged", "text", 2}, {"text", "text", 1}, {"used", "text", 1}}, a.Graders)
	require.Len(t, a.Arms.With, 3, "a skipped trial has no result")
	first, second, third := a.Arms.With[0], a.Arms.With[1], a.Arms.With[2]
	require.Equal(t, []any{1.0, true, (*string)(nil)}, []any{first.Score, first.Passed, first.Error})
	require.Equal(t, grade{Name: "judged", Passed: true, Weight: 2, Explanation: "judge votes: PASS FAIL PASS — note: score 0.00", Scored: true,
		JudgeVotes: []bool{true, false, true}}, first.Graders[0])
	require.Equal(t, grade{Name: "used", Weight: 1, Explanation: "score 0.00", WithOnly: true}, first.Graders[2])
	require.InDelta(t, 1.0/3, second.Score, 1e-9)
	require.Equal(t, "limits: 11 turns, at most 10", *second.Error)
	require.Equal(t, []any{0.0, false, "no network"}, []any{third.Score, third.Passed, *third.Error})
	require.Len(t, *a.Arms.Without, 1)
	require.Len(t, (*a.Arms.Without)[0].Graders, 2)
	require.InDelta(t, 4.0/9, *a.Aggregates.Score, 1e-9)
	require.InDelta(t, 1.0/3, *a.Aggregates.PassRate, 1e-9)
	require.InDelta(t, 1.0/3, *a.Aggregates.ScoreWithout, 1e-9)
	require.InDelta(t, 1.0/9, *a.Aggregates.Delta, 1e-9)
	require.Nil(t, doc.Cases[1].Arms.Without)
	require.Nil(t, doc.Cases[1].Aggregates.Delta)
	require.Equal(t, []int{2, 1}, []int{doc.Aggregates.CasesTotal, doc.Aggregates.CasesPassed})
	require.InDelta(t, 13.0/18, *doc.Aggregates.OverallScore, 1e-9)
	require.InDelta(t, 1.0/9, *doc.Aggregates.MeanDelta, 1e-9)
}

// A run that did not end is partial, and says why. Numbers that nobody knows are absent.
func TestPartial(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		now     record.Progress
		partial bool
		reason  string
	}{
		{record.Progress{Status: record.StatusCompleted, Summary: &record.Summary{}}, false, ""},
		{record.Progress{Status: record.StatusInterrupted}, true, "interrupted"},
		{record.Progress{Status: record.StatusCancelled}, true, "interrupted"},
		{record.Progress{Status: record.StatusCancelled, Error: "the budget is spent"}, true, "cost_ceiling"},
	} {
		h := &reporttest.Canned{Rec: &record.Run{RunID: "r"}, Now: c.now}
		h.AddTask("a", record.RoleTask, record.Skipped, h.Ungraded(record.Skipped, "not started"))
		written := reporttest.Written(t, Write, h)
		for _, key := range []string{"costUsd", "durationSeconds", "startedAt", "overallScore", "meanDelta", `"score"`} {
			require.NotContains(t, written, key)
		}
		doc := documentIn(t, h)
		require.Equal(t, []any{c.partial, c.reason}, []any{doc.Partial, doc.PartialReason})
	}
}
