package runner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// Tasks without a prompt grader are judged by a general rubric, and the others by theirs.
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
	require.InDelta(t, 68.3, j.Report.OverallScore, 1e-9)
	require.Equal(t, "C+", j.Report.OverallGrade)
}

// A suite of the kind judge says which model judges.
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
