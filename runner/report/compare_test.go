package report

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/compare"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/report/reporttest"
	"waza/runner/runnertest"
)

// exampleComparison returns a comparison with every part that can occur.
func exampleComparison() *compare.Comparison {
	contrast := func(a, b float64) record.Contrast {
		return record.Contrast{Reference: a, Run: b, Difference: b - a, Interval: &record.Interval{Low: b - a - 0.2, High: b - a + 0.2}}
	}
	pointer := func(c record.Contrast) *record.Contrast { return &c }
	ratio := func(a, b float64) *compare.Ratio {
		r := b / a
		return &compare.Ratio{Reference: a, Run: b, Ratio: &r, Interval: &record.Interval{Low: r - 0.1, High: r + 0.1}}
	}
	run := func(name string) compare.ComparedRun {
		return compare.ComparedRun{
			Name: name, RunID: name, Status: record.StatusCompleted, Suite: record.SuiteRef{Name: "demo | *suite*"},
			Executor: "openai", Model: "gpt-4o",
			StartedAt: time.Date(2026, 11, 21, 10, 15, 0, 0, time.Local), Tasks: reporttest.Counts(4, 1, 0, 0, 0, 0),
			Trials: reporttest.Counts(40, 10, 2, 0, 0, 0),
		}
	}
	c := &compare.Comparison{
		Confidence: 0.95, Margin: 0.1,
		Runs: []compare.ComparedRun{run("20261120-101500-abc"), run("20261121-101500-def")},
	}
	c.Runs[0].File = "base`line.jsonl"
	c.Comparisons = []compare.RunComparison{{
		Run: "20261121-101500-def", Outcome: record.OutcomeWorse, P: 0.012, Compared: 7,
		ClassCounts: record.ClassCounts{Improved: 1, Regressed: 2, Unchanged: 2, Undecided: 2},
		PassRate:    pointer(contrast(0.8, 0.6)), Score: pointer(contrast(0.9, 0.7)), Verdicts: compare.Verdicts{Lost: 2, Won: 1, P: 1},
		DurationMS: ratio(1200, 1500), Tokens: ratio(1000, 900), CostUSD: ratio(0.01, 0.02),
		Tools: &compare.ToolContrasts{
			Selection: record.Contrast{Reference: 0.5, Run: 1, Difference: 0.5},
			Overall:   record.Contrast{Reference: 0.75, Run: 0.7, Difference: -0.05},
		},
		Differences: []compare.Difference{{What: "model", Reference: "gpt-4o", Run: "gpt-5"}, {What: "agent", Run: "opencode"}},
		Notes: []compare.ComparisonNote{
			{Run: "20261121-101500-def", Text: "was regraded or reviewed: its verdicts may come from different graders than in the run"},
			{Text: "baselines and trigger tests are not compared"},
		},
		Tasks: []compare.TaskComparison{
			{ID: "same", Class: record.Unchanged, Equal: true, PassRate: contrast(1, 1), P: 1},
			{ID: "better", Class: record.Improved, By: "passRate", PassRate: contrast(0.1, 0.9), Score: pointer(contrast(0.1, 0.9)), P: 0.0004},
			{
				ID: "who|knows\x1b[31m", Class: record.Undecided, PassRate: contrast(0.5, 0.7), P: 0.6,
				Needed: &record.Needed{Trials: 120, More: 110}, Changed: compare.ChangedGraders,
			},
			{ID: "worse", Class: record.Regressed, By: "passRate", PassRate: contrast(1, 0.2), Score: pointer(contrast(1, 0.3)), P: 0.02},
			{
				ID: "never-known", Class: record.Undecided, PassRate: contrast(0.5, 0.5), P: 1,
				Needed: &record.Needed{}, Changed: compare.ChangedExecution,
			},
			{ID: "scored", Class: record.Regressed, By: "score", PassRate: contrast(1, 1), Score: pointer(contrast(0.9, 0.6)), P: 0.001},
			{ID: "same-too", Class: record.Unchanged, PassRate: contrast(1, 1), P: 1},
		},
		Uncounted: []compare.UncountedTask{
			{ID: "offline", Reference: reporttest.Counts(3, 0, 0, 0, 0, 0), Run: reporttest.Counts(0, 0, 3, 0, 0, 0)},
		},
		OnlyReference: []string{"gone"}, OnlyRun: []string{"fresh", "freshest"},
	}}
	x := &c.Comparisons[0]
	x.About = record.TasksLikeThese
	x.TasksLikeThese = record.LikeAnswer{
		Answer: record.Answer{Outcome: x.Outcome, P: x.P, PassRate: x.PassRate, Score: x.Score}, Clusters: 7, AtLeast: 6,
		Variance: &record.Variance{Between: 0.03, Within: 0.01, Share: 0.75, MoreTrials: 0.134},
	}
	narrow := func(c record.Contrast) *record.Contrast {
		c.Interval = &record.Interval{Low: c.Difference - 0.1, High: c.Difference + 0.1}
		return &c
	}
	x.TheseTasks = record.Answer{Outcome: x.Outcome, P: 0.003, PassRate: narrow(contrast(0.8, 0.6)), Score: narrow(contrast(0.9, 0.7))}
	return c
}

// manyRuns adds two further runs: one that is the same, and one that is better.
func manyRuns() *compare.Comparison {
	c := exampleComparison()
	for i, outcome := range []record.Outcome{record.OutcomeSame, record.OutcomeBetter} {
		x := c.Comparisons[0]
		x.Run, x.Outcome, x.Notes, x.Differences = c.Runs[1].RunID+letter(i), outcome, nil, nil
		x.Tasks = x.Tasks[:4]
		x.CostUSD, x.Score, x.TheseTasks.Score, x.TasksLikeThese.Score = nil, nil, nil, nil
		x.TheseTasks.Outcome = outcome
		x.TasksLikeThese.Outcome = outcome
		if outcome == record.OutcomeBetter { // too few tasks for the other question
			needed := 24
			x.About = record.TheseTasks
			x.TasksLikeThese.Outcome, x.TasksLikeThese.P, x.TasksLikeThese.TooFew = record.OutcomeUndecided, 1, true
			x.TasksLikeThese.Clusters, x.TasksLikeThese.TasksNeeded = 4, &needed
		}
		r := c.Runs[1]
		r.Name = x.Run
		c.Runs, c.Comparisons = append(c.Runs, r), append(c.Comparisons, x)
	}
	return c
}

func TestComparisonGolden(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*compare.Comparison{"compare": exampleComparison(), "compare_many": manyRuns()} {
		var text, md strings.Builder
		require.NoError(t, Comparison(&text, c, Options{}))
		reporttest.Golden(t, name+".txt", text.String())
		require.NoError(t, ComparisonMarkdown(&md, c))
		reporttest.Golden(t, name+".md", md.String())
		checkMarkdown(t, md.String())
	}
	var coloured strings.Builder
	require.NoError(t, Comparison(&coloured, exampleComparison(), Options{Color: true, Width: 60}))
	require.Contains(t, coloured.String(), "\x1b[31m2 regressed\x1b[0m")
	require.NotContains(t, coloured.String(), "who|knows\x1b")
}

// Only the first of very many tasks are listed.
func TestComparisonIsBounded(t *testing.T) {
	t.Parallel()
	c := exampleComparison()
	c.Comparisons[0].Tasks = nil
	for i := range 1000 {
		c.Comparisons[0].Tasks = append(c.Comparisons[0].Tasks, compare.TaskComparison{ID: letter(i), Class: record.Undecided})
	}
	var text strings.Builder
	require.NoError(t, Comparison(&text, c, Options{}))
	require.Contains(t, text.String(), "and 800 more, which --json lists")
	require.Less(t, strings.Count(text.String(), "\n"), 300)
}

func TestComparisonOfNothing(t *testing.T) {
	t.Parallel()
	c := &compare.Comparison{
		Runs:        []compare.ComparedRun{{Name: "a"}, {Name: "b"}},
		Comparisons: []compare.RunComparison{{Run: "b", Outcome: record.OutcomeUndecided, P: 1}},
	}
	var text strings.Builder
	require.NoError(t, Comparison(&text, c, Options{}))
	require.Contains(t, text.String(), "0 undecided of 0 tasks, each by itself\n")
	require.Equal(t, "AA", letter(26))
	require.Equal(t, "ZZ", letter(26*27-1))
}

// Columns are dropped if a terminal is too narrow for all of them.
func TestComparisonFits(t *testing.T) {
	t.Parallel()
	for _, width := range []int{60, 80, 120} {
		var b strings.Builder
		require.NoError(t, Comparison(&b, exampleComparison(), Options{Width: width}))
		table, _, found := strings.Cut(b.String(), "2 tasks are unchanged")
		require.True(t, found)
		require.Contains(t, table, "regressed by score")
		for line := range strings.Lines(table) {
			if !strings.Contains(line, "against A: ") {
				require.LessOrEqual(t, Columns(strings.TrimRight(line, "\n")), width, line)
			}
		}
	}
}

// An interval that excludes 0 was printed beside "undecided" without a word.
func TestComparisonExplainsIntervals(t *testing.T) {
	t.Parallel()
	const suite = "-- eval.yaml --\nname: intervals\nconfig: {executor: agent, trials_per_task: 5}\n" +
		"graders: [{name: good, type: text, config: {contains: [good]}}]\ntasks: [{id: a, prompt: x}, {id: b, prompt: x}]\n"
	dir := t.TempDir()
	passing := func(n int) record.Handle {
		return runnertest.RecordRun(t, dir, suite, func(_ context.Context, t *executor.Trial) (string, error) {
			if t.Task.ID == "a" && t.Num > n || t.Task.ID == "b" && t.Num > 3 {
				return "bad", nil
			}
			return "good", nil
		})
	}
	all := passing(5)
	for n, explained := range map[int]bool{1: true, 4: false} {
		c := runnertest.Compare(t, compare.Options{}, all, passing(n))
		var text, markdown strings.Builder
		require.NoError(t, Comparison(&text, c, Options{}))
		require.NoError(t, ComparisonMarkdown(&markdown, c))
		for _, out := range []string{text.String(), markdown.String()} {
			require.Contains(t, out, "0 regressed, 0 improved")
			require.Contains(t, out, "each by itself")
			require.Equal(t, explained, strings.Contains(out, compare.NoContradiction), out)
		}
	}
}
