package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/eval"
	"waza/runner"
	"waza/runner/executor"
	"waza/runner/proc/proctest"
	"waza/runner/record"
	"waza/runner/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// agent is an executor that calls a tool, answers, and fails on request.
type agent struct{}

func (agent) Execute(_ context.Context, t *executor.Trial) (executor.Outcome, error) {
	t.Transcript.Message("user", t.Prompt)
	t.Transcript.ToolCall(record.ToolCall{
		ID: "c1", Name: "bash", Arguments: json.RawMessage(`{"secret":"plan"}`), Status: "completed",
		DurationMS: 1,
	})
	t.Transcript.ToolCall(record.ToolCall{Name: "view", Status: "failed"})
	usage := &record.Usage{InputTokens: 12, OutputTokens: 3, CostUSD: 0.25}
	if strings.HasPrefix(t.Prompt, "break") {
		return executor.Outcome{Usage: usage}, errors.New("out of paper")
	}
	return executor.Outcome{Output: "private words", Usage: usage}, nil
}

func (agent) Close() error { return nil }

const suiteText = `
name: office
config: {trials_per_task: 2, executor: %s, model: gpt-test, retry_errors: 0}
graders: [{name: words, type: text, weight: 1, config: {contains: [private]}}]
tasks:
  - {id: good, prompt: do it}
  - {id: bad, prompt: do it badly, graders: [{name: more, type: text, config: {contains: [public]}}]}
  - {id: broken, prompt: break it}
`

// traced runs the suite with an executor of that name and traces it.
func traced(t *testing.T, executorName string, o telemetry.TraceOptions) *runner.Run {
	t.Helper()
	traces, err := telemetry.NewTraces(o)
	require.NoError(t, err)
	run := runSuite(t, fmt.Sprintf(suiteText, executorName), executorName, traces)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	traces.Close(ctx)
	return run
}

// runSuite runs a suite on its own runner, which is watched.
func runSuite(t *testing.T, text, executorName string, watcher interface{ Watch(*runner.Runner) }) *runner.Run {
	t.Helper()
	r := newRunner(t, executorName)
	watcher.Watch(r)
	run := start(t, r, text)
	<-run.Done()
	return run
}

func newRunner(t *testing.T, executorName string) *runner.Runner {
	t.Helper()
	r, err := runner.New(runner.Options{StateDir: t.TempDir(), Executors: executor.NewRegistry(executor.Kind{
		Kind: eval.Kind{Name: executorName},
		Open: func(context.Context, executor.Settings) (executor.Executor, error) { return agent{}, nil },
	})})
	require.NoError(t, err)
	return r
}

func start(t *testing.T, r *runner.Runner, text string) *runner.Run {
	t.Helper()
	path := filepath.Join(t.TempDir(), "eval.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	suite, ds, err := eval.Load(path, eval.Options{Vocabulary: r.Planner().Vocabulary()})
	require.NoError(t, err)
	require.False(t, ds.HasErrors(), "%v", ds)
	plan, err := r.Planner().Plan(t.Context(), suite, record.Request{})
	require.NoError(t, err)
	run, err := r.Start(plan)
	require.NoError(t, err)
	return run
}

// A run is a trace of tasks, trials and tool calls. It has the attributes of the conventions and
// no contents.
func TestTraces(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	run := traced(t, "desk", telemetry.TraceOptions{Endpoint: c.URL, Version: "1.2"})
	root := checkTrace(t, c, run)
	require.NotContains(t, attributesOf(root.Attributes), "waza.fleet")
}

// checkTrace checks the trace of a run of the suite above, and returns its root.
func checkTrace(t *testing.T, c *collector, run *runner.Run) *node {
	t.Helper()
	roots := c.tree(t)
	require.Len(t, roots, 1)
	require.Equal(t, "waza", attributesOf(c.resource)["service.name"])
	require.Equal(t, "1.2", attributesOf(c.resource)["service.version"])

	root := roots[0]
	require.Equal(t, "run office", root.Name)
	a := attributesOf(root.Attributes)
	require.Equal(t, run.ID(), a["waza.run.id"])
	require.Equal(t, "completed", a["waza.status"])
	require.Equal(t, "gpt-test", a["gen_ai.request.model"])
	require.EqualValues(t, 6*12, a["gen_ai.usage.input_tokens"])
	require.Len(t, root.children, 3)
	for _, task := range root.children {
		ta := attributesOf(task.Attributes)
		id := ta["waza.task.id"].(string)
		require.Equal(t, "task "+id, task.Name)
		require.Equal(t, map[string]any{"good": "passed", "bad": "failed", "broken": "error"}[id], ta["waza.verdict"])
		require.Len(t, task.children, 2)
		numbers := []int64{}
		for _, trial := range task.children {
			numbers = append(numbers, checkTrial(t, id, trial))
		}
		slices.Sort(numbers)
		require.Equal(t, []int64{1, 2}, numbers)
	}
	for _, s := range c.spans {
		text := s.String()
		for _, private := range []string{"private words", "out of paper", "plan", "do it"} {
			require.NotContains(t, text, private)
		}
	}
	return root
}

func checkTrial(t *testing.T, task string, trial *node) (num int64) {
	t.Helper()
	require.Equal(t, "invoke_agent desk", trial.Name)
	a := attributesOf(trial.Attributes)
	require.Equal(t, "invoke_agent", a["gen_ai.operation.name"])
	require.Equal(t, "desk", a["gen_ai.agent.name"])
	require.Equal(t, "gpt-test", a["gen_ai.request.model"])
	require.EqualValues(t, 12, a["gen_ai.usage.input_tokens"])
	require.EqualValues(t, 3, a["gen_ai.usage.output_tokens"])
	require.InDelta(t, 0.25, a["waza.usage.cost_usd"], 1e-9)
	if task == "broken" {
		require.Equal(t, "STATUS_CODE_ERROR", trial.Status.Code.String())
		require.Equal(t, "error", a["error.type"])
		require.Empty(t, trial.Events)
	} else {
		require.Equal(t, "STATUS_CODE_UNSET", trial.Status.Code.String(), "a failed trial is not an error")
		require.Equal(t, "gen_ai.evaluation.result", trial.Events[0].Name)
		e := attributesOf(trial.Events[0].Attributes)
		require.Equal(t, "words", e["gen_ai.evaluation.name"])
		require.Equal(t, "passed", e["gen_ai.evaluation.score.label"])
		require.InDelta(t, 1, e["gen_ai.evaluation.score.value"], 0)
	}
	require.Len(t, trial.children, 2)
	bash, view := trial.children[0], trial.children[1]
	require.Equal(t, "execute_tool bash", bash.Name)
	b := attributesOf(bash.Attributes)
	require.Equal(t, "execute_tool", b["gen_ai.operation.name"])
	require.Equal(t, "bash", b["gen_ai.tool.name"])
	require.Equal(t, "c1", b["gen_ai.tool.call.id"])
	require.Equal(t, "STATUS_CODE_ERROR", view.Status.Code.String())
	return a["waza.trial"].(int64)
}

// Contents are exported on request. An executor that asks models directly has a span for the
// model calls.
func TestTracesWithContents(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	traced(t, "openai", telemetry.TraceOptions{Endpoint: c.URL + "/v1/traces", Contents: true})
	all := ""
	chats := 0
	for _, s := range c.spans {
		all += s.String()
		if s.Name == "chat gpt-test" {
			chats++
			a := attributesOf(s.Attributes)
			require.Equal(t, "chat", a["gen_ai.operation.name"])
			require.Equal(t, "openai", a["gen_ai.provider.name"])
			require.Equal(t, "SPAN_KIND_CLIENT", s.Kind.String())
		}
	}
	require.Equal(t, 6, chats)
	for _, said := range []string{"private words", "out of paper", "secret", "do it badly"} {
		require.Contains(t, all, said)
	}
}

// No span is lost if a run creates spans faster than they are sent.
func TestManySpans(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	traces, err := telemetry.NewTraces(telemetry.TraceOptions{Endpoint: c.URL})
	require.NoError(t, err)
	const trials = 3000
	runSuite(t, fmt.Sprintf("name: many\nconfig: {executor: desk, trials_per_task: %d, workers: 4, parallel: "+
		"true}\ntasks: [{id: a, prompt: x}]\n",
		trials),
		"desk", traces)
	traces.Close(t.Context())
	require.Len(t, c.spans, 2+3*trials)
}

// A collector that is unreachable, or rejects traces, causes a single warning.
func TestCollectorAway(t *testing.T) {
	t.Parallel()
	nobody := "http://" + proctest.FreeAddress(t)
	refusing := newCollector(t)
	refusing.status = 400
	for _, endpoint := range []string{nobody, refusing.URL} {
		var log bytes.Buffer
		run := traced(t, "desk", telemetry.TraceOptions{Endpoint: endpoint, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		p, err := run.Progress()
		require.NoError(t, err)
		require.Equal(t, record.StatusCompleted, p.Status)
		require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		require.Contains(t, log.String(), "cannot send traces to the collector")
	}
}

// Close gives up when its time is over if the collector never answers.
func TestCollectorHangs(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	traces, err := telemetry.NewTraces(telemetry.TraceOptions{Endpoint: "http://" + l.Addr().String()})
	require.NoError(t, err)
	runSuite(t, fmt.Sprintf(suiteText, "desk"), "desk", traces)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	traces.Close(ctx)
	require.Less(t, time.Since(begin), 9*time.Second, "less than the exporter's own limit")
}

func TestTraceEndpoints(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"localhost:4318", "ftp://x", "http://", "::", "grpc://localhost:4317"} {
		_, err := telemetry.NewTraces(telemetry.TraceOptions{Endpoint: bad})
		require.ErrorContains(t, err, "must be the URL of a collector", bad)
	}
}

// The environment sets the collector if no option does.
func TestTracesFromEnvironment(t *testing.T) {
	c := newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=blue")
	t.Setenv("OTEL_SERVICE_NAME", "nightly")
	traced(t, "desk", telemetry.TraceOptions{Endpoint: telemetry.FromEnvironment})
	require.Len(t, c.tree(t), 1)
	require.Equal(t, "blue", c.headers.Get("x-team"))
	require.Equal(t, "nightly", attributesOf(c.resource)["service.name"])
}
