package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/compare"
	"waza/runner/record"
	"waza/runner/report/reporttest"
)

// besideExample returns a run of two tasks with baselines, and of trigger tests.
func besideExample() (*Report, *record.Summary) {
	rec := &record.Run{RunID: "20261121-101500-abc", Suite: record.SuiteRef{Name: "demo"}}
	add := func(id string, role record.Role) {
		rec.Tasks = append(rec.Tasks, record.TaskRef{ID: id, Trials: 2, Role: role})
	}
	add("a#baseline", record.RoleBaseline)
	add("a", record.RoleTask)
	add("b#baseline", record.RoleBaseline)
	add("b", record.RoleTask)
	add("should_trigger#1", record.RoleTrigger)
	r := New(rec)
	for i, res := range []*record.Task{
		reporttest.NewTask(record.Failed, reporttest.Counts(0, 2, 0, 0, 0, 0), 0, 9,
			record.Reason{Verdict: record.Failed, Grader: "says", Message: "not for the table", Trials: 2}),
		reporttest.NewTask(record.Passed, reporttest.Counts(2, 0, 0, 0, 0, 0), 1, 9),
		reporttest.NewTask(record.Passed, reporttest.Counts(1, 0, 1, 0, 0, 0), 1, 9,
			record.Reason{Verdict: record.Errored, Message: "connection refused", Trials: 1}),
		reporttest.NewTask(record.Passed, reporttest.Counts(2, 0, 0, 0, 0, 0), 1, 9),
		reporttest.NewTask(record.Failed, reporttest.Counts(1, 1, 0, 0, 0, 0), 0.5, 9,
			record.Reason{Verdict: record.Failed, Grader: "_should_trigger", Message: "nor this", Trials: 1}),
	} {
		r.Tasks[i].Result = res
	}
	prompt := func(id, text string, verdict record.Verdict, triggered, answered, errors, timeouts int) record.TriggerPrompt {
		return record.TriggerPrompt{ID: id, TriggerRef: record.TriggerRef{Prompt: text}, Verdict: verdict,
			Triggered: triggered, Answered: answered, Errors: errors, Timeouts: timeouts}
	}
	return r, &record.Summary{
		Counts: reporttest.Counts(2, 0, 0, 0, 0, 0), DurationMS: 1200,
		Trials: record.TrialCounts{Counts: reporttest.Counts(4, 0, 0, 0, 0, 0)},
		Baseline: &record.BaselineResult{
			Measured: true, Pairs: 2, ClassCounts: record.ClassCounts{Improved: 1, Unchanged: 1}, Errors: 1,
			PassRate: &record.Gain{With: 1, Without: 0.5, Gain: 0.5, Interval: &record.Interval{Low: -0.004, High: 1}},
			Score:    &record.Gain{With: 1, Without: 0.75, Gain: 0.25, Interval: &record.Interval{Low: 0, High: 0.5}},
			Tasks: []record.TaskBaseline{
				{
					ID: "a", With: 2, Without: 2, PassRate: &record.Gain{With: 1, Without: 0, Gain: 1},
					Score: &record.Gain{With: 1, Without: 0.5, Gain: 0.5},
				},
				{ID: "b", With: 2, Without: 1, PassRate: &record.Gain{With: 1, Without: 1, Gain: 0}, Score: &record.Gain{With: 1, Without: 1, Gain: 0}},
				{ID: "c\x1b[2J", With: 2},
			},
		},
		Triggers: &record.TriggerResult{
			Skill: "explainer", Prompts: 6, Measured: true, Errors: 2, Timeouts: 1,
			Accuracy: reporttest.Share(0.75), AccuracyInterval: &record.Interval{Low: 0.3, High: 0.95}, Recall: reporttest.Share(0.5),
			Results: []record.TriggerPrompt{
				prompt("should_trigger#1",
					"What does this\ndo, \x1b[31mplease\x1b[0m, and why does it do so in such a roundabout way?",
					record.Failed, 1, 2, 0, 0),
				prompt("should_trigger#2", "Explain this.", record.Passed, 2, 2, 0, 0),
				prompt("should_trigger#3", "Explain that.", record.Errored, 0, 0, 2, 0),
				prompt("should_not_trigger#1", "Sort this.", record.TimedOut, 0, 1, 0, 1),
			},
		},
	}
}

func TestReportOfBaselineAndTriggers(t *testing.T) {
	t.Parallel()
	r, sum := besideExample()
	r.Status, r.Summary = record.StatusCompleted, sum
	var b strings.Builder
	require.NoError(t, r.Write(&b, Options{}))
	reporttest.Golden(t, "beside.txt", b.String())
	require.NotContains(t, b.String(), "\x1b")
}

// The baseline printed an interval that excludes 0 beside "undecided", without a word: the test
// allows for all tasks, and the interval counts by itself.
func TestBaselineExplainsIntervals(t *testing.T) {
	t.Parallel()
	for low, explained := range map[float64]bool{0.1: true, -0.1: false} {
		r, sum := besideExample()
		r.Status, r.Summary = record.StatusCompleted, sum
		sum.Baseline.Tasks[0].Class = record.Undecided
		sum.Baseline.Tasks[0].PassRate.Interval = &record.Interval{Low: low, High: 1}
		var b strings.Builder
		require.NoError(t, r.Write(&b, Options{}))
		require.Equal(t, explained, strings.Contains(b.String(), compare.NoContradiction), b.String())
		m := &markdown{Report: r, left: 1 << 16}
		m.baseline()
		require.Equal(t, explained, strings.Contains(m.b.String(), compare.NoContradiction))
	}
}

// An incomplete run counts the tasks of the suite, and no others.
func TestTallyLeavesOutRoles(t *testing.T) {
	t.Parallel()
	r, _ := besideExample()
	tasks, trials := r.tally()
	require.Equal(t, reporttest.Counts(2, 0, 0, 0, 0, 0), tasks)
	require.Equal(t, reporttest.Counts(4, 0, 0, 0, 0, 0), trials)
}

func TestReportOfTriggersAlone(t *testing.T) {
	t.Parallel()
	r := New(&record.Run{Tasks: []record.TaskRef{{ID: "should_trigger#1", Role: record.RoleTrigger}}})
	r.Status = record.StatusCompleted
	r.Summary = &record.Summary{
		Triggers: &record.TriggerResult{Prompts: 1, Measured: true, Accuracy: reporttest.Share(1),
			Results: []record.TriggerPrompt{{ID: "should_trigger#1", Verdict: record.Passed, Triggered: 1, Answered: 1}}},
	}
	var b strings.Builder
	require.NoError(t, r.Write(&b, Options{}))
	require.Equal(t, "Trigger tests: 1 of 1 prompt right\n  accuracy 100 %, precision –, recall –, F1 –\n\nNo task "+
		"of the suite was run; 0 ms\n",
		b.String())
}

// The baseline has the name that the run recorded, everywhere. In Markdown it is code.
func TestBaselineNamesArm(t *testing.T) {
	t.Parallel()
	for outcome, says := range map[record.Outcome]string{
		record.OutcomeBetter:    "the results are better than with skills at v<b>1 (p 0.0",
		record.OutcomeWorse:     "the results are worse than with skills at v<b>1 (p 0.0",
		record.OutcomeSame:      "with the skills and with skills at v<b>1, the results are the same within",
		record.OutcomeUndecided: "it is undecided whether the results are better than with skills at v<b>1 (p 0.0",
	} {
		r, sum := besideExample()
		sum.Baseline.Arm, sum.Baseline.Outcome, sum.Baseline.P = (&record.Revision{Name: "v<b>1"}).Arm(), outcome, 0.011
		r.Status, r.Summary = record.StatusCompleted, sum
		var b strings.Builder
		require.NoError(t, r.Write(&b, Options{}))
		for _, want := range []string{
			"  With skills 100 %, with skills at v<b>1 50 %: +50 points", "  Score 1.00, with skills at v<b>1 0.75: +0.25",
			"1 error with skills at v<b>1\n", "  With skills at v<b>1  Points", says,
		} {
			require.Contains(t, b.String(), want)
		}
		require.NotContains(t, strings.ToLower(b.String()), "without skills")
		m := &markdown{Report: r, left: 1 << 16}
		m.baseline()
		require.Contains(t, m.b.String(), "; with skills 100 %, `with skills at v<b>1` 50 %: +50 points")
		require.Equal(t, 2, strings.Count(m.b.String(), "`with skills at v<b>1`"), m.b.String())
		require.Equal(t, record.Arm("with skills at v<b>1"), sum.Baseline.Arm, "the report changes nothing")
	}
}
