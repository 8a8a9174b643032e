package regrade_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/runnertest"
)

func judgedSuite(t *testing.T, s *runnertest.JudgeServer) string {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return fmt.Sprintf(`-- eval.yaml --
name: judged
config: {executor: command, command: "echo fine > a.txt; cat a.txt", trials_per_task: 5}
graders:
  - name: judge
    type: prompt
    config: {rubric: rubric.md, model: gpt-4o, base_url: %s/v1, api_key_command: echo %s, files: [a.txt]}
  - {name: says, type: text, config: {contains: [fine]}}
tasks: [{id: a, prompt: x}, {id: b, prompt: x}]
-- rubric.md --
Is it fine?
`, srv.URL, runnertest.SecretKey)
}

// A judge is asked again only if the question is different.
func TestGradeAsksNoJudgeInVain(t *testing.T) {
	t.Parallel()
	s := &runnertest.JudgeServer{}
	files := judgedSuite(t, s)
	r, id, _ := runnertest.FinishedRun(t, files)
	require.EqualValues(t, 10, s.Requests.Load())
	for _, tc := range []struct {
		name     string
		edit     []string
		o        regrade.GradeOptions
		requests int64
		verdict  record.Verdict
	}{
		{"nothing", nil, regrade.GradeOptions{}, 0, record.Passed},
		{"a code grader", []string{"contains: [fine]", "contains: [fein]"}, regrade.GradeOptions{}, 0, record.Failed},
		{"name and weight", []string{"- name: judge", "- name: judge2\n    weight: 3"}, regrade.GradeOptions{}, 0, record.Passed},
		{
			"without a key",
			[]string{"api_key_command: echo " + runnertest.SecretKey, "api_key_env: WAZA_TEST_NOT_SET"},
			regrade.GradeOptions{}, 0, record.Passed,
		},
		{"asked", nil, regrade.GradeOptions{Rejudge: true}, 10, record.Passed},
		{"rubric file", []string{"Is it fine?", "Is it finer?"}, regrade.GradeOptions{}, 10, record.Passed},
		{"model", []string{"gpt-4o", "gpt-4.1"}, regrade.GradeOptions{}, 10, record.Passed},
	} {
		before := s.Requests.Load()
		g, res := runnertest.GradeAgain(t, r, id, runnertest.Replace(t, files, tc.edit...), tc.o)
		require.Equal(t, tc.requests, s.Requests.Load()-before, tc.name)
		require.Equal(t, 10, g.Graded, tc.name)
		require.Equal(t, tc.verdict, res.Task(t, "a").Verdict, tc.name)
		want := 0.9
		switch {
		case tc.verdict == record.Failed:
			want = 0.4
		case tc.name == "name and weight":
			want = 0.85
		}
		require.InDelta(t, want, *res.Trial(t, "a", 1).Score, 1e-9, tc.name)
	}
}

// A judge without comparison was asked again when a pairwise judge was added to its task or
// removed, because the hash of its question included the output without skills.
func TestGradeAsksOnlyChangedJudges(t *testing.T) {
	t.Parallel()
	s := &runnertest.JudgeServer{}
	files := runnertest.Replace(t, judgedSuite(t, s), "name: judged\n", "name: judged\nbaseline: true\n",
		"tasks: [{id: a, prompt: x}, {id: b, prompt: x}]", "tasks: [{id: a, prompt: x}]")
	r, id, _ := runnertest.FinishedRun(t, files)
	require.EqualValues(t, 10, s.Requests.Load(), "a and its baseline")
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	paired := runnertest.Replace(t, files, "{id: a, prompt: x}",
		"{id: a, prompt: x, graders: [{name: better, type: prompt, config: {mode: pairwise, rubric: r, model: m, base_url: "+
			other.URL+", api_key_command: echo "+runnertest.SecretKey+"}}]}")
	s.Requests.Store(0)
	for _, suite := range []string{paired, files} {
		runnertest.GradeAgain(t, r, id, suite, regrade.GradeOptions{})
		require.Zero(t, s.Requests.Load())
	}
}

// An unreachable judge causes an error. A later grading repairs it, with as many requests as
// trials lack a verdict.
func TestGradeJudgeOutage(t *testing.T) {
	t.Parallel()
	s := &runnertest.JudgeServer{}
	files := judgedSuite(t, s)
	s.Fail(http.StatusBadRequest, 4)
	r, id, _ := runnertest.FinishedRun(t, files)
	require.Equal(t, 6, runnertest.ResultOf(t, runnertest.Reopened(t, r, id)).Summary.Trials.Errors)
	before := s.Requests.Load()
	s.Fail(0, 0)
	g, res := runnertest.GradeAgain(t, r, id, files, regrade.GradeOptions{})
	require.EqualValues(t, 6, s.Requests.Load()-before)
	require.Equal(t, 6, g.Changed)
	require.Equal(t, 10, res.Summary.Trials.Passed)
}
