package runner_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/runnertest"
)

// Tasks without a prompt grader are judged by a general rubric, and the others by their graders.
func TestJudgeRun(t *testing.T) {
	t.Parallel()
	jury := &runnertest.Jury{}
	suite := runnertest.JudgeSuite(jury.Serve(t), "  model: m-1", `
  - {id: a, prompt: good}
  - {id: b, prompt: perfect, graders: [{name: says, type: text, config: {contains: [perfect]}}]}
  - {id: c, prompt: poor, graders: [{name: own, type: prompt, config: {prompt: Is it rude, threshold: 0.2}}]}`)
	res, events := runnertest.Run(t, suite, record.Request{})
	require.Equal(t, record.StatusCompleted, res.Status)
	require.Equal(t, 3, jury.Asked()["submit_verdict"])
	require.Equal(t, "judge", res.Trial(t, "a", 1).Graders[0].Name)
	require.Equal(t, []string{"says", "judge"}, []string{res.Trial(t, "b", 1).Graders[0].Name, res.Trial(t, "b", 1).Graders[1].Name})
	require.Len(t, res.Trial(t, "c", 1).Graders, 1)
	require.Contains(t, runnertest.Logs(events), "2 tasks have no prompt grader")

	// 1 + 4 × 0.8 = 4.2, 1 + 4 × 1 = 5, 1 + 4 × 0.25 = 2.
	j := res.Summary.Judged
	require.Equal(t, 3, j.Cases)
	require.Equal(t, 3, j.Judged)
	require.Equal(t, [5]int{0, 1, 0, 1, 1}, j.Quality)
	// (0.8 + 1 + 0.25) / 3 = 0.6833…
	require.InDelta(t, 68.3, *j.Report.OverallScore, 1e-9)
	require.Equal(t, "C+", j.Report.OverallGrade)
}

// twoModels returns a suite of two models, whose answers to a case are the first and the second
// word of its prompt.
func twoModels(t *testing.T, jury *runnertest.Jury, config, tasks string) string {
	t.Helper()
	jury.Answers = func(model, prompt string) string {
		words := strings.Fields(prompt)
		return words[map[string]int{"m-1": 0, "m-2": 1, "m-3": 2}[model]]
	}
	return runnertest.JudgeSuite(jury.Serve(t), config, tasks)
}

const sixCases = `
  - {id: a, prompt: perfect poor}
  - {id: b, prompt: poor good}
  - {id: c, prompt: fair fair}`

// Two models are compared in both orders. A judge that prefers a position produces a tie.
func TestJudgeCompares(t *testing.T) {
	t.Parallel()
	jury := &runnertest.Jury{}
	res, events := runnertest.Run(t,
		twoModels(t, jury, "  models: [m-1, m-2]\n  parallel: true\n  workers: 4\n  trials_per_task: 2", sixCases),
		record.Request{})
	require.Equal(t, record.StatusCompleted, res.Status, res.Error)
	asked := jury.Asked()
	require.Equal(t, 12, asked["submit_verdict"])
	require.Equal(t, 12, asked["submit_comparison"])
	require.Equal(t, 1, asked["submit_findings"])
	require.Equal(t, 2, asked["compare perfect | poor"])
	require.Equal(t, 2, asked["compare poor | perfect"])
	require.Equal(t, 4, asked["compare fair | fair"])

	j := res.Summary.Judged
	// m-1: 1, 0.25, 0.5; m-2: 0.25, 0.8, 0.5. The mean of the six tasks is 0.55.
	require.InDelta(t, 55, *j.Report.OverallScore, 1e-9)
	require.Equal(t, "C-", j.Report.OverallGrade)
	require.Equal(t, []string{"Most answers are correct."}, j.Report.Strengths)
	require.Equal(t, []string{"Some answers are incomplete."}, j.Report.Weaknesses)
	require.Equal(t, "judge", j.Report.Judge)
	require.Len(t, j.Comparisons, 1)
	p := j.Comparisons[0]
	require.Equal(t, []any{"m-1", "m-2", 2, 2, 2}, []any{p.ModelA, p.ModelB, p.Wins, p.Losses, p.Ties})
	require.InDelta(t, 0.5, *p.WinRate, 1e-9) // (1 + 0 + 0.5) / 3
	require.Len(t, p.Cases, 6)
	for i, want := range []struct {
		task       string
		winner     record.Winner
		confidence float64
	}{
		{"a[m-1]", record.WinnerA, 1}, {"a[m-1]", record.WinnerA, 1}, {"b[m-1]", record.WinnerB, 1},
		{"b[m-1]", record.WinnerB, 1}, {"c[m-1]", record.Tie, 0}, {"c[m-1]", record.Tie, 0},
	} {
		c := p.Cases[i]
		require.Equal(t, []any{want.task, want.winner, want.confidence, i + 1, 1 + i%2},
			[]any{c.TaskA, c.Winner, c.Confidence, c.Num, c.TrialNum})
	}
	require.Equal(t, "A is better", p.Cases[0].Reasoning)
	require.Contains(t, p.Cases[4].Reasoning, "model_a in one order of the answers and model_b in the other")

	// 25 questions to the judge: 12 verdicts, 12 comparisons, the report.
	require.Equal(t, int64(25*60), res.Summary.UsageByRole.Judges.InputTokens)
	require.InDelta(t, 25*(60*1000+40*500)/1e6, res.Summary.UsageByRole.Judges.CostUSD, 1e-9)
	var types []record.EventType
	for _, e := range events[len(events)-10:] {
		types = append(types, e.Type)
	}
	require.Equal(t, []record.EventType{
		record.CompareStart, record.CompareComplete, record.CompareComplete, record.CompareComplete,
		record.CompareComplete, record.CompareComplete, record.CompareComplete,
		record.JudgeComplete, record.RunComplete, record.End,
	}, types)
}

// Of more than two models, each is compared with the first.
func TestJudgeComparesWithFirst(t *testing.T) {
	t.Parallel()
	jury := &runnertest.Jury{}
	res, _ := runnertest.Run(t, twoModels(t, jury, "  models: [m-1, m-2, m-3]", "  - {id: a, prompt: good poor perfect}"), record.Request{})
	pairs := res.Summary.Judged.Comparisons
	require.Len(t, pairs, 2)
	require.Equal(t, []any{"m-1", "m-2", 1, 0}, []any{pairs[0].ModelA, pairs[0].ModelB, pairs[0].Wins, pairs[0].Losses})
	require.Equal(t, []any{"m-1", "m-3", 0, 1}, []any{pairs[1].ModelA, pairs[1].ModelB, pairs[1].Wins, pairs[1].Losses})
}

// A run makes a limited number of comparisons, and reports how many it leaves out.
func TestJudgeComparesAtMost(t *testing.T) {
	t.Parallel()
	const most = 20
	jury := &runnertest.Jury{}
	r := runnertest.NewRunner(t)
	r.CompareAtMost(most)
	run := runnertest.Start(t, r,
		twoModels(t, jury, fmt.Sprintf("  models: [m-1, m-2]\n  parallel: true\n  workers: 8\n  trials_per_task: %d", most+3),
			"  - {id: a, prompt: good poor}"),
		record.Request{})
	events := runnertest.Follow(t, run, 1)
	<-run.Done()
	j := runnertest.ResultOf(t, run).Summary.Judged
	require.Equal(t, 3, j.LeftOut)
	require.Zero(t, j.Missing)
	require.Equal(t, most, j.Comparisons[0].Wins)
	require.Equal(t, 2*most, jury.Asked()["submit_comparison"])
	require.Contains(t, runnertest.Logs(events), "3 comparisons omitted")
}

// A run that is killed anywhere after its trials asks the missing questions, and none twice.
func TestJudgeResumes(t *testing.T) {
	t.Parallel()
	jury := &runnertest.Jury{}
	suite := twoModels(t, jury, "  models: [m-1, m-2]\n  parallel: true\n  workers: 4", sixCases)
	r := runnertest.NewRunner(t)
	run := runnertest.Start(t, r, suite, record.Request{})
	<-run.Done()
	want, before := runnertest.ResultOf(t, run), jury.Asked()
	whole := stateOf(t, run.Files().Dir())
	lines := strings.SplitAfter(strings.TrimSpace(string(whole.journal)), "\n")
	first := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, `"type":"compare_start"`) })
	for cut := first; cut < len(lines); cut++ {
		comparisons, findings := strings.Count(strings.Join(lines[:cut], ""), `"type":"compare_complete"`), strings.Count(strings.Join(lines[:cut],
			""),
			`"type":"judge_complete"`)
		s := whole
		s.journal, s.result = []byte(strings.Join(lines[:cut], "")), nil
		resumer, err := runner.New(runner.Options{StateDir: s.put(t, run.ID())})
		require.NoError(t, err)
		res, _ := runnertest.Resumed(t, resumer, run.ID())
		runnertest.EqualResults(t, want, res)
		after := jury.Asked()
		require.Equal(t, before["submit_verdict"], after["submit_verdict"], "after line %d", cut)
		require.Equal(t, 2*(3-comparisons), after["submit_comparison"]-before["submit_comparison"], "after line %d", cut)
		require.Equal(t, 1-findings, after["submit_findings"]-before["submit_findings"], "after line %d", cut)
		before = after
		_, err = runnertest.Resume(t, resumer, run.ID())
		require.ErrorContains(t, err, "has nothing left to run")
	}
}

// If a judge is unreachable after the trials, the questions end in error, and a resumed run asks
// them again.
func TestJudgeUnreachable(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	down.Store(true)
	jury := &runnertest.Jury{Before: func(_ context.Context, tool, _ string) int {
		if down.Load() && tool != "submit_verdict" {
			return http.StatusBadRequest // not retried
		}
		return 0
	}}
	r := runnertest.NewRunner(t)
	run := runnertest.Start(t, r, twoModels(t, jury, "  models: [m-1, m-2]", sixCases), record.Request{})
	events := runnertest.Follow(t, run, 1)
	<-run.Done()
	res := runnertest.ResultOf(t, run)
	require.Equal(t, record.StatusCompleted, res.Status)
	require.Zero(t, res.Summary.Trials.Errors)
	j := res.Summary.Judged
	require.Equal(t, 3, j.Missing)
	require.Nil(t, j.Comparisons[0].WinRate)
	require.Contains(t, j.Comparisons[0].Cases[0].Error, "no judgement today")
	require.Contains(t, j.Report.Missing, "no judgement today")
	require.Equal(t, "C-", j.Report.OverallGrade)
	require.Contains(t, runnertest.Logs(events), "3 of 3 comparisons could not be made")

	down.Store(false)
	verdicts := jury.Asked()["submit_verdict"]
	res, _ = runnertest.Resumed(t, r, run.ID())
	require.Zero(t, res.Summary.Judged.Missing)
	require.Empty(t, res.Summary.Judged.Report.Missing)
	require.Equal(t, verdicts, jury.Asked()["submit_verdict"])
}

// Grading a run again changes its grade, and makes its strengths and weaknesses stale until the
// run is resumed. Comparisons remain.
func TestJudgeGradedAgain(t *testing.T) {
	t.Parallel()
	jury := &runnertest.Jury{}
	r := runnertest.NewRunner(t)
	run := runnertest.Start(t, r, twoModels(t, jury, "  models: [m-1, m-2]", sixCases), record.Request{})
	<-run.Done()
	before := runnertest.ResultOf(t, run).Summary.Judged
	jury.Lenient.Store(true)
	suite, _, err := eval.Load(run.Record().Suite.Path, eval.Options{Vocabulary: r.Planner().Vocabulary()})
	require.NoError(t, err)
	g, err := r.Amender().Grade(t.Context(), run.ID(), suite, regrade.GradeOptions{Rejudge: true})
	require.NoError(t, err)
	after := g.Summary.Judged
	require.Equal(t, "A+", after.Report.OverallGrade)
	require.Equal(t, [5]int{4: 6}, after.Quality)
	require.True(t, after.Report.Stale)
	require.Equal(t, before.Report.Strengths, after.Report.Strengths)
	require.Equal(t, before.Comparisons, after.Comparisons)

	asked := jury.Asked()
	res, _ := runnertest.Resumed(t, r, run.ID())
	require.False(t, res.Summary.Judged.Report.Stale)
	require.Equal(t, "A+", res.Summary.Judged.Report.OverallGrade)
	require.Equal(t, before.Comparisons, res.Summary.Judged.Comparisons)
	asked["submit_findings"]++
	require.Equal(t, asked, jury.Asked())
}

// Only a task whose trials run again is compared again.
func TestJudgeResumesChangedTask(t *testing.T) {
	t.Parallel()
	jury := &runnertest.Jury{}
	r := runnertest.NewRunner(t)
	run := runnertest.Start(t, r, twoModels(t, jury, "  models: [m-1, m-2]", sixCases), record.Request{})
	<-run.Done()
	path := run.Record().Suite.Path
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(b), "poor good", "perfect good", 1)), 0o600))
	asked := jury.Asked()
	res, _ := runnertest.Resumed(t, r, run.ID())
	require.Equal(t, asked["submit_comparison"]+2, jury.Asked()["submit_comparison"])
	require.Equal(t, asked["submit_verdict"]+2, jury.Asked()["submit_verdict"])
	require.Equal(t, 1, jury.Asked()["compare perfect | good"])
	p := res.Summary.Judged.Comparisons[0]
	require.Equal(t, []int{2, 0, 1}, []int{p.Wins, p.Losses, p.Ties})
}

// Cancelling ends a question that the judge does not answer.
func TestJudgeCancelled(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}, 10), make(chan struct{})
	jury := &runnertest.Jury{Before: func(_ context.Context, tool, _ string) int {
		if tool == "submit_comparison" {
			asked <- struct{}{}
			<-release
		}
		return 0
	}}
	r := runnertest.NewRunner(t)
	run := runnertest.Start(t, r, twoModels(t, jury, "  models: [m-1, m-2]", sixCases), record.Request{})
	defer close(release)
	<-asked
	run.Cancel()
	<-run.Done()
	res := runnertest.ResultOf(t, run)
	require.Equal(t, record.StatusCancelled, res.Status)
	require.Equal(t, 3, res.Summary.Judged.Missing)
	require.Equal(t, 6, res.Summary.Trials.Counted())
}

// A run with an exhausted budget makes no more comparisons, and reports the reason.
func TestJudgeBudget(t *testing.T) {
	t.Parallel()
	jury := &runnertest.Jury{}
	// Each question costs $0.08, but may cost more than $1 by the estimate.
	res, _ := runnertest.Run(t, twoModels(t, jury, "  models: [m-1, m-2]\n  max_cost: 1.8", sixCases), record.Request{})
	require.Equal(t, record.StatusCancelled, res.Status)
	require.Contains(t, res.Error, "config.max_cost of $1.8")
	require.LessOrEqual(t, res.Summary.Usage.CostUSD, 1.8)
	require.Positive(t, res.Summary.Judged.Missing)
	require.NotEmpty(t, res.Summary.Judged.Report.Missing)
}

// A suite of kind judge must name a judge model.
func TestJudgeNeedsModel(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	for _, tc := range []struct {
		name, config, tasks string
		fault               bool
	}{
		{"none", "", "{id: a, prompt: x}", true},
		{"of the config", "judge_model: j", "{id: a, prompt: x}", false},
		{"of the grader", "", "{id: a, prompt: x, graders: [{type: prompt, config: {prompt: p, model: j}}]}", false},
		{"grader without", "", "{id: a, prompt: x, graders: [{type: prompt, config: {prompt: p}}]}", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			text := "name: s\nkind: judge\nconfig: {executor: mock, model: m, " + tc.config + "}\ntasks: [" + tc.tasks + "]\n"
			file := filepath.Join(t.TempDir(), "eval.yaml")
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			_, ds, err := eval.Load(file, eval.Options{Vocabulary: r.Planner().Vocabulary()})
			require.NoError(t, err)
			require.Equal(t, tc.fault, strings.Contains(fmt.Sprint(ds.Errors()), "needs a judge"), "%v", ds)
		})
	}
}
