package runner_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
)

// judgeServer is a judge that lets everything pass, until it is told otherwise.
type judgeServer struct {
	requests atomic.Int64
	mu       sync.Mutex
	status   int // 0 answers
	after    int64
}

func (s *judgeServer) fail(status int, after int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.after = status, after
}

func (s *judgeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := s.requests.Add(1)
	_, _ = io.Copy(io.Discard, r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status != 0 && n > s.after {
		w.WriteHeader(s.status)
		fmt.Fprint(w, `{"error":{"message":"no judgement today"}}`)
		return
	}
	fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"1","function":{"name":"submit_verdict","arguments":"{\"score\":0.8,\"passed\":true,\"reason\":\"fine\"}"}}]},"finish_reason":"tool_calls"}]}`+"\n\n")
	fmt.Fprint(w, `data: {"choices":[],"usage":{"prompt_tokens":60,"completion_tokens":40,"total_tokens":100}}`+"\n\ndata: [DONE]\n\n")
}

func judgedSuite(t *testing.T, s *judgeServer) string {
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
`, srv.URL, secretKey)
}

// A judge is asked again only where it would be asked something else.
func TestGradeAsksNoJudgeInVain(t *testing.T) {
	t.Parallel()
	s := &judgeServer{}
	files := judgedSuite(t, s)
	r, id, _ := done(t, files)
	require.EqualValues(t, 10, s.requests.Load())
	for _, tc := range []struct {
		name     string
		edit     []string
		o        runner.GradeOptions
		requests int64
		verdict  runner.Verdict
	}{
		{"nothing", nil, runner.GradeOptions{}, 0, runner.Passed},
		{"a code grader", []string{"contains: [fine]", "contains: [fein]"}, runner.GradeOptions{}, 0, runner.Failed},
		{"name and weight", []string{"- name: judge", "- name: judge2\n    weight: 3"}, runner.GradeOptions{}, 0, runner.Passed},
		{"without a key", []string{"api_key_command: echo " + secretKey, "api_key_env: WAZA_TEST_NOT_SET"}, runner.GradeOptions{}, 0, runner.Passed},
		{"asked", nil, runner.GradeOptions{Rejudge: true}, 10, runner.Passed},
		{"rubric file", []string{"Is it fine?", "Is it finer?"}, runner.GradeOptions{}, 10, runner.Passed},
		{"model", []string{"gpt-4o", "gpt-4.1"}, runner.GradeOptions{}, 10, runner.Passed},
	} {
		before := s.requests.Load()
		g, res := regrade(t, r, id, edited(t, files, tc.edit...), tc.o)
		require.Equal(t, tc.requests, s.requests.Load()-before, tc.name)
		require.Equal(t, 10, g.Graded, tc.name)
		require.Equal(t, tc.verdict, res.Tasks[0].Verdict, tc.name)
		want := 0.9
		switch {
		case tc.verdict == runner.Failed:
			want = 0.4
		case tc.name == "name and weight":
			want = 0.85
		}
		require.InDelta(t, want, *res.Tasks[0].Trials[0].Score, 1e-9, tc.name)
	}
}

// A judge that compares nothing was asked again when a pairwise judge of its task
// came or went, for the hash of what it asks held the output without skills.
func TestGradeAsksNoJudgeForAnother(t *testing.T) {
	t.Parallel()
	s := &judgeServer{}
	files := edited(t, judgedSuite(t, s), "name: judged\n", "name: judged\nbaseline: true\n",
		"tasks: [{id: a, prompt: x}, {id: b, prompt: x}]", "tasks: [{id: a, prompt: x}]")
	r, id, _ := done(t, files)
	require.EqualValues(t, 10, s.requests.Load(), "a and its baseline")
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	paired := edited(t, files, "{id: a, prompt: x}",
		"{id: a, prompt: x, graders: [{name: better, type: prompt, config: {mode: pairwise, rubric: r, model: m, base_url: "+other.URL+", api_key_command: echo "+secretKey+"}}]}")
	s.requests.Store(0)
	for _, suite := range []string{paired, files} {
		regrade(t, r, id, suite, runner.GradeOptions{})
		require.Zero(t, s.requests.Load())
	}
}

// A judge that cannot be reached makes an error, which a later grading mends with
// no more requests than trials lack a verdict.
func TestGradeJudgeOutage(t *testing.T) {
	t.Parallel()
	s := &judgeServer{}
	files := judgedSuite(t, s)
	s.fail(http.StatusBadRequest, 4)
	r, id, _ := done(t, files)
	require.Equal(t, 6, resultOf(t, reopened(t, r, id)).Summary.Trials.Errors)
	before := s.requests.Load()
	s.fail(0, 0)
	g, res := regrade(t, r, id, files, runner.GradeOptions{})
	require.EqualValues(t, 6, s.requests.Load()-before)
	require.Equal(t, 6, g.Changed)
	require.Equal(t, 10, res.Summary.Trials.Passed)
}
