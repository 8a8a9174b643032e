package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/stats"
)

// besideExample is a run of two tasks with baselines, and of trigger tests.
func besideExample() (*Report, *runner.Summary) {
	rec := &runner.Record{RunID: "20261121-101500-abc", Suite: runner.SuiteRef{Name: "demo"}}
	add := func(id string, role runner.Role) {
		rec.Tasks = append(rec.Tasks, runner.TaskRef{ID: id, Trials: 2, Role: role})
	}
	add("a#baseline", runner.RoleBaseline)
	add("a", runner.RoleTask)
	add("b#baseline", runner.RoleBaseline)
	add("b", runner.RoleTask)
	add("should_trigger#1", runner.RoleTrigger)
	r := New(rec)
	for i, res := range []*runner.TaskResult{
		result(runner.Failed, counts(0, 2, 0, 0, 0, 0), 0, 9, runner.Reason{Verdict: runner.Failed, Grader: "says", Message: "not for the table", Trials: 2}),
		result(runner.Passed, counts(2, 0, 0, 0, 0, 0), 1, 9),
		result(runner.Passed, counts(1, 0, 1, 0, 0, 0), 1, 9, runner.Reason{Verdict: runner.Errored, Message: "connection refused", Trials: 1}),
		result(runner.Passed, counts(2, 0, 0, 0, 0, 0), 1, 9),
		result(runner.Failed, counts(1, 1, 0, 0, 0, 0), 0.5, 9, runner.Reason{Verdict: runner.Failed, Grader: "_should_trigger", Message: "nor this", Trials: 1}),
	} {
		r.Add(&runner.Event{Type: runner.TaskComplete, TaskID: rec.Tasks[i].ID, TaskNum: i + 1, Task: res, Role: rec.Tasks[i].Role})
	}
	prompt := func(id, text string, verdict runner.Verdict, triggered, answered, errors, timeouts int) runner.TriggerPrompt {
		return runner.TriggerPrompt{ID: id, TriggerRef: runner.TriggerRef{Prompt: text}, Verdict: verdict,
			Triggered: triggered, Answered: answered, Errors: errors, Timeouts: timeouts}
	}
	return r, &runner.Summary{
		Counts: counts(2, 0, 0, 0, 0, 0), DurationMS: 1200,
		Trials: runner.TrialCounts{Counts: counts(4, 0, 0, 0, 0, 0)},
		Baseline: &runner.BaselineResult{
			Measured: true, Pairs: 2, ClassCounts: runner.ClassCounts{Improved: 1, Unchanged: 1}, Errors: 1,
			PassRate: &runner.Gain{With: 1, Without: 0.5, Gain: 0.5, Interval: &stats.Interval{Low: -0.004, High: 1}},
			Score:    &runner.Gain{With: 1, Without: 0.75, Gain: 0.25, Interval: &stats.Interval{Low: 0, High: 0.5}},
			Tasks: []runner.TaskBaseline{
				{ID: "a", With: 2, Without: 2, PassRate: &runner.Gain{With: 1, Without: 0, Gain: 1}, Score: &runner.Gain{With: 1, Without: 0.5, Gain: 0.5}},
				{ID: "b", With: 2, Without: 1, PassRate: &runner.Gain{With: 1, Without: 1, Gain: 0}, Score: &runner.Gain{With: 1, Without: 1, Gain: 0}},
				{ID: "c\x1b[2J", With: 2},
			},
		},
		Triggers: &runner.TriggerResult{
			Skill: "explainer", Prompts: 6, Measured: true, Errors: 2, Timeouts: 1,
			Accuracy: share(0.75), AccuracyInterval: &stats.Interval{Low: 0.3, High: 0.95}, Recall: share(0.5),
			Results: []runner.TriggerPrompt{
				prompt("should_trigger#1", "What does this\ndo, \x1b[31mplease\x1b[0m, and why does it do so in such a roundabout way?", runner.Failed, 1, 2, 0, 0),
				prompt("should_trigger#2", "Explain this.", runner.Passed, 2, 2, 0, 0),
				prompt("should_trigger#3", "Explain that.", runner.Errored, 0, 0, 2, 0),
				prompt("should_not_trigger#1", "Sort this.", runner.TimedOut, 0, 1, 0, 1),
			},
		},
	}
}

func TestReportBesideTasks(t *testing.T) {
	t.Parallel()
	r, sum := besideExample()
	r.Add(&runner.Event{Type: runner.End, Status: runner.StatusCompleted, Summary: sum})
	var b strings.Builder
	require.NoError(t, r.Write(&b, Options{}))
	golden(t, "beside.txt", b.String())
	require.NotContains(t, b.String(), "\x1b")
}

// A run that has not completed counts the tasks of the suite, and no others.
func TestTallyLeavesOutRoles(t *testing.T) {
	t.Parallel()
	r, _ := besideExample()
	tasks, trials := r.tally()
	require.Equal(t, counts(2, 0, 0, 0, 0, 0), tasks)
	require.Equal(t, counts(4, 0, 0, 0, 0, 0), trials)
}

func TestReportOfTriggersAlone(t *testing.T) {
	t.Parallel()
	r := New(&runner.Record{Tasks: []runner.TaskRef{{ID: "should_trigger#1", Role: runner.RoleTrigger}}})
	r.Add(&runner.Event{Type: runner.End, Status: runner.StatusCompleted, Summary: &runner.Summary{
		Triggers: &runner.TriggerResult{Prompts: 1, Measured: true, Accuracy: share(1),
			Results: []runner.TriggerPrompt{{ID: "should_trigger#1", Verdict: runner.Passed, Triggered: 1, Answered: 1}}},
	}})
	var b strings.Builder
	require.NoError(t, r.Write(&b, Options{}))
	require.Equal(t, "Trigger tests: 1 of 1 prompt right\n  accuracy 100 %, precision –, recall –, F1 –\n\nNo task of the suite was run; 0 ms\n", b.String())
}
