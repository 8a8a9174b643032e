package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/compare"
	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/runnertest"
)

// judgedRun returns the report of a run of the kind judge with every part that can occur.
func judgedRun() *report.Report {
	rate, overall := 0.75, 82.0
	rec := &record.Run{
		RunID: "20260102-030405.000-abcdefghij", Suite: record.SuiteRef{Name: "answers", Kind: eval.Judge},
		Tasks: []record.TaskRef{{ID: "a[m-1]", Task: "a"}, {ID: "a[m-2]", Task: "a"}},
	}
	r := report.New(rec)
	r.Status = record.StatusCompleted
	r.Summary = &record.Summary{Judged: &record.JudgeResult{
		Cases: 5, Judged: 4, Quality: [5]int{1, 0, 0, 1, 2}, Missing: 1, LeftOut: 2,
		Comparisons: []record.PairResult{{ModelA: "m-1", ModelB: "m-2", Wins: 1, Ties: 1, WinRate: &rate, WinRateInterval: &record.Interval{Low: 0.211, High: 0.958}, Cases: []*record.CaseComparison{
			{
				Num: 1, ModelA: "m-1", ModelB: "m-2", TaskA: "a[m-1]", TaskB: "a[m-2]", TrialNum: 1,
				Winner: record.WinnerA, Confidence: 1, Reasoning: "it is `complete`",
			},
			{Num: 2, ModelA: "m-1", ModelB: "m-2", TaskA: "a[m-1]", TaskB: "a[m-2]", TrialNum: 2, Winner: record.Tie},
			{Num: 3, ModelA: "m-1", ModelB: "m-2", TaskA: "a[m-1]", TaskB: "a[m-2]", TrialNum: 3, Error: "unreachable"},
		}}},
		Report: &record.JudgeReport{
			OverallScore: &overall, OverallGrade: "B+", Strengths: []string{"Complete\x1b[31m answers."},
			Weaknesses: []string{"<b>Rude</b>."}, Stale: true, Judge: "j",
		},
	}}
	return r
}

func TestJudgedText(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, judgedRun().Write(&b, report.Options{Width: 100}))
	for _, line := range []string{
		"Judged: grade B+, 82 of 100",
		"Quality  5  4  3  2  1  Not judged",
		"Cases    2  1  0  0  1  1",
		"m-1 against m-2  1     0       1     75 %      21–96 %",
		"1 comparison was not made: waza runs resume 20260102-030405.000-abcdefghij makes the missing ones",
		"2 comparisons are omitted because there are too many",
		"a, trial 1  m-1     100 %",
		"a, trial 2  tie     0 %",
		"a, trial 3  none    –",
		`  Complete\x1b[31m answers.`,
		"Verdicts changed since strengths and weaknesses were written",
	} {
		require.Contains(t, b.String(), line)
	}
}

// The report names the tasks that the grade leaves out. Without a common task it has no grade.
func TestJudgedLeavesOut(t *testing.T) {
	t.Parallel()
	r := judgedRun()
	r.Summary.Common = &record.CommonTasks{
		Tasks:   2,
		LeftOut: []record.LeftOutTask{{Task: "hard", Cells: []string{"m-2"}, CellCount: 1, Why: "ended in error"}},
	}
	var b bytes.Buffer
	require.NoError(t, r.Write(&b, report.Options{Width: 100}))
	require.Contains(t, b.String(), "The grade is that of 2 of 3 tasks. Left out: hard (ended in error in m-2)\n")
	r.Summary.Judged.Report.OverallScore = nil
	b.Reset()
	require.NoError(t, r.Write(&b, report.Options{Width: 100}))
	require.Contains(t, b.String(), "Judged: no grade, because no task has a score in every cell\n")
}

func TestJudgedMarkdown(t *testing.T) {
	t.Parallel()
	jury := &runnertest.Jury{Answers: func(model, prompt string) string {
		return strings.Fields(prompt)[map[string]int{"m-1": 0, "m-2": 1}[model]]
	}}
	r := runnertest.NewRunner(t)
	suite := runnertest.JudgeSuite(jury.Serve(t), "  models: [m-1, m-2]", "  - {id: a, prompt: perfect poor}")
	run := runnertest.Start(t, r, suite, record.Request{})
	<-run.Done()
	var b bytes.Buffer
	require.NoError(t, report.WriteMarkdown(&b, run))
	for _, line := range []string{
		"**Judged: grade C, 62.5 of 100**",
		"| `m-1 against m-2` | 1 | 0 | 0 | 100 % |",
		"| `a, trial 1` | `m-1` | 100 % | `A is better` |",
		"**Strengths**", "`Most answers are correct.`", "**Weaknesses**",
	} {
		require.Contains(t, b.String(), line)
	}

	c, err := compare.Compare(t.Context(), []compare.Source{compare.FromRun(run), compare.FromRun(run)}, compare.Options{})
	require.NoError(t, err)
	b.Reset()
	require.NoError(t, report.ComparisonMarkdown(&b, c))
	require.Contains(t, b.String(), "| Judged |")
	require.Contains(t, b.String(), "| C (62.5) |")
}
