package runner_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// modelServer is an OpenAI-compatible API. It rejects all requests for the time busy. A status
// other than 0 is its only answer.
type modelServer struct {
	busy     time.Duration
	status   int
	requests atomic.Int64
	started  atomic.Int64 // Unix nanoseconds of the first request
}

func (s *modelServer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.requests.Add(1)
	s.started.CompareAndSwap(0, time.Now().UnixNano())
	switch {
	case s.status != 0:
		w.WriteHeader(s.status)
		fmt.Fprintf(w, `{"error":{"message":"the key %s is no good"}}`, runnertest.SecretKey)
	case time.Since(time.Unix(0, s.started.Load())) < s.busy:
		w.Header().Set("Retry-After-Ms", "100")
		w.WriteHeader(http.StatusTooManyRequests)
	default:
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"fine, %s\"},\"finish_reason\":\"stop\"}]}\n\n",
			runnertest.SecretKey)
		fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":60,\"completion_tokens\":40,\"total_tokens\":100}}\n\ndata: [DONE]\n\n")
	}
}

// modelSuite returns a suite that asks the server, with further lines of config.
func modelSuite(t *testing.T, s *modelServer, config string) string {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return fmt.Sprintf(`-- eval.yaml --
name: s
config:
  executor: openai
  model: gpt-4o
  base_url: %s/v1
  api_key_command: echo %s
%s
graders:
  - {name: said, type: text, config: {contains: [fine]}}
tasks:
  - {id: a, prompt: x}
`, srv.URL, runnertest.SecretKey, config)
}

// A provider that is temporarily overloaded costs a few requests and no trial.
func TestBusyProvider(t *testing.T) {
	t.Parallel()
	s := &modelServer{busy: 2 * time.Second}
	res, _ := runnertest.Run(t, modelSuite(t, s, "  trials_per_task: 200\n  workers: 16\n  parallel: true\n  retry_errors: 0"),
		record.Request{})
	require.Equal(t, record.StatusCompleted, res.Status)
	require.Equal(t, 200, res.Summary.Trials.Passed)
	require.LessOrEqual(t, s.requests.Load(), int64(300))
	require.NotNil(t, res.Trial(t, "a", 1).Speed)
	sent, throttled, waited := 0, 0, int64(0)
	for num := range 200 {
		c := res.Trial(t, "a", num+1).Conditions
		require.NotNil(t, c)
		sent, throttled, waited = sent+c.Requests.Sent, throttled+c.Requests.Throttled, waited+c.Requests.WaitedMS
	}
	require.EqualValues(t, s.requests.Load(), sent)
	require.Equal(t, sent-200, throttled)
	require.Positive(t, throttled)
	require.Positive(t, waited)
	require.Positive(t, res.Summary.Usage.CostUSD)
}

// A rejected key ends the run at once, with one message.
func TestRefusedKey(t *testing.T) {
	t.Parallel()
	s := &modelServer{status: http.StatusUnauthorized}
	res, _ := runnertest.Run(t, modelSuite(t, s, "  trials_per_task: 50"), record.Request{})
	require.Equal(t, record.StatusFailed, res.Status)
	require.Contains(t, res.Error, "401 Unauthorized: the key [redacted] is no good")
	require.Equal(t, int64(1), s.requests.Load())
	require.LessOrEqual(t, res.Summary.Trials.Errors, 1)
}

func TestMissingKey(t *testing.T) {
	t.Parallel()
	s := &modelServer{}
	files := strings.Replace(modelSuite(t, s, ""), "api_key_command: echo "+runnertest.SecretKey, "api_key_env: WAZA_TEST_NOT_SET", 1)
	res, _ := runnertest.Run(t, files, record.Request{})
	require.Equal(t, record.StatusFailed, res.Status)
	require.Contains(t, res.Error, "$WAZA_TEST_NOT_SET is not set")
	require.Zero(t, s.requests.Load())
}

// A run stops before it exceeds its budget. Its results remain.
func TestBudget(t *testing.T) {
	t.Parallel()
	s := &modelServer{}
	res, _ := runnertest.Run(t, modelSuite(t, s, "  trials_per_task: 50\n  max_tokens: 1000\n  params: {max_tokens: 50}"), record.Request{})
	require.Equal(t, record.StatusCancelled, res.Status)
	require.Contains(t, res.Error, "config.max_tokens of 1000")
	require.InDelta(t, 9, res.Summary.Trials.Passed, 1)
	require.Zero(t, res.Summary.Trials.Failed+res.Summary.Trials.Errors+res.Summary.Trials.Timeouts)
	require.LessOrEqual(t, res.Summary.Usage.Total(), int64(1000))
}

// The reported cost of an agent counts, although it is only known afterwards.
func TestBudgetOfAgents(t *testing.T) {
	t.Parallel()
	suite := `
-- eval.yaml --
name: s
config:
  trials_per_task: 50
  model: %s
  mock: {replies: [{output: fine, usage: {input_tokens: 60, output_tokens: 40}}]}
  %s
tasks: [{id: a, prompt: x}]
`
	for _, c := range []struct {
		model, limit, want string
		passed             int
	}{
		{"any", "max_tokens: 1000", "config.max_tokens of 1000", 10},
		{"any", "max_cost: 0.01\n  prices: {any: {input: 10, output: 10}}", "config.max_cost of $0.01", 10},
		{"none-knows", "max_cost: 1", `config.max_cost requires a price for model "none-knows"`, 1},
	} {
		res, _ := runnertest.Run(t, fmt.Sprintf(suite, c.model, c.limit), record.Request{})
		require.Equal(t, record.StatusCancelled, res.Status)
		require.Contains(t, res.Error, c.want)
		require.Equal(t, c.passed, res.Summary.Trials.Passed)
		require.Equal(t, 50-c.passed, res.Summary.Trials.Skipped)
	}
}

// No file and no event of a run contains the key, even when the model repeats it and a program
// of the suite prints it.
func TestNoKeyLeftBehind(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: state})
	require.NoError(t, err)
	files := strings.Replace(modelSuite(t, &modelServer{}, ""), "tasks:",
		"  - {name: leak, type: program, config: {command: sh, args: [-c, 'echo no: "+runnertest.SecretKey[:10]+"\"\""+
			runnertest.SecretKey[10:]+"; exit 1']}}\ntasks:",
		1)
	live := runnertest.Start(t, r, files, record.Request{})
	events := runnertest.Follow(t, live, 1)
	<-live.Done()
	found := 0
	for _, e := range events {
		if e.Trial != nil {
			require.Equal(t, "fine, [redacted]", e.Trial.Output)
			require.NotContains(t, fmt.Sprintf("%+v", *e.Trial), runnertest.SecretKey)
			found++
		}
	}
	require.Equal(t, 1, found)
	require.Contains(t, runnertest.Recorded(t, state, runnertest.SecretKey), "no: [redacted]")
}
