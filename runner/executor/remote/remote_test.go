package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/executor/remote"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// TestEvaluation checks the requests for a task with all keys and for a task with none.
func TestEvaluation(t *testing.T) {
	t.Parallel()
	hub := &fakeHub{}
	res, _ := run(t, hub, `
name: s
inputs: {site: example.org}
config:
  executor: remote
  model: gpt-x
  timeout_seconds: 30
  max_attempts: 3
  retry_errors: 1
  parallel: true
  workers: 1
  remote: {clients: [550e8400-e29b-41d4-a716-446655440000], tools: [screenshot]}
tasks:
  - id: all
    name: Extract
    tags: [x, y]
    inputs:
      tool: "extract_{{trial}}"
      url: https://{{site}}/
      input: {schema: {type: object, title: "of {{site}}"}, count: 3, list: [1, true, null, "{{task_id}}"]}
      priority: high
  - {id: least, prompt: "say {{site}}"}
`)
	require.Equal(t, 2, res.Summary.Trials.Passed)
	b, err := json.MarshalIndent(hub.asked, "", "  ")
	require.NoError(t, err)
	want := `[
  {
    "evaluationId": "RUN/all/1/1/HASH0",
    "name": "Extract",
    "url": "https://example.org/",
    "tool": "extract_1",
    "input": {
      "count": 3,
      "list": [
        1,
        true,
        null,
        "all"
      ],
      "schema": {
        "title": "of example.org",
        "type": "object"
      }
    },
    "model": {
      "main_model": "gpt-x"
    },
    "timeout": 30000,
    "metadata": {
      "tags": [
        "x",
        "y"
      ],
      "retries": 3,
      "priority": "high"
    }
  },
  {
    "evaluationId": "RUN/least/1/1/HASH1",
    "name": "least",
    "tool": "chat",
    "input": {
      "message": "say example.org"
    },
    "model": {
      "main_model": "gpt-x"
    },
    "timeout": 30000,
    "metadata": {
      "tags": [],
      "retries": 3,
      "priority": "normal"
    }
  }
]`
	replace := []string{res.RunID, "RUN"}
	for i, task := range res.Tasks {
		replace = append(replace, task.Trials[0].Hash[:12], fmt.Sprintf("HASH%d", i))
	}
	require.Equal(t, want, strings.NewReplacer(replace...).Replace(string(b)))
	require.Equal(t, &remote.Want{
		ID: hub.asked[0].ID, Tool: "extract_1", Tools: []string{"screenshot"},
		Clients: []string{"550e8400-e29b-41d4-a716-446655440000"}, Priority: "high",
	}, hub.wants[0])
	require.Zero(t, hub.held)
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 10_000)
	for name, c := range map[string]struct {
		result, fault  string
		verdict        record.Verdict
		output, errors string
	}{
		"text":              {result: `"hello"`, verdict: record.Passed, output: "hello"},
		"status and output": {result: `{"status":"success","output":{"a": 1, "b": [2]}}`, verdict: record.Passed, output: `{"a":1,"b":[2]}`},
		"output text":       {result: `{"status":"success","output":"a b"}`, verdict: record.Passed, output: `a b`},
		"output alone":      {result: `{"output": 7}`, verdict: record.Passed, output: `7`},
		"no output":         {result: `{"status":"success"}`, verdict: record.Passed},
		"output null":       {result: `{"status":"success","output":null}`, verdict: record.Passed, output: "null"},
		"other object":      {result: `{"title":"x", "status": 200}`, verdict: record.Passed, output: `{"title":"x","status":200}`},
		"odd status":        {result: `{"status":200,"output":"x"}`, verdict: record.Passed, output: `x`},
		"list":              {result: `[1, 2]`, verdict: record.Passed, output: `[1,2]`},
		"zero":              {result: `0`, verdict: record.Passed, output: `0`},
		"empty":             {result: `""`, verdict: record.Passed},
		"false":             {result: `false`, verdict: record.Passed, output: `false`},
		"null":              {result: `null`, verdict: record.Passed, output: `null`},
		"failed": {
			result: `{"status":"failed","output":"half","error":"no such page"}`, verdict: record.Failed,
			output: "half", errors: `the agent ended with status "failed": no such page`,
		},
		"failed object": {
			result: `{"status":"error","error":{"message":"no"}}`, verdict: record.Failed,
			errors: `the agent ended with status "error": no`,
		},
		"failed silently": {result: `{"status":"partial"}`, verdict: record.Failed, errors: `the agent ended with status "partial"`},
		"nothing":         {verdict: record.Errored, errors: "the agent c1 answered with neither a result nor an error"},
		"no JSON":         {result: `{"a`, verdict: record.Errored, errors: "the agent c1 answered with a result that is not JSON"},
		"tool": {fault: `{"code":-32000,"message":"Tool execution failed","data":{"tool":"t","error":"Page load timeout"}}`,
			verdict: record.Failed, errors: "Tool execution failed: Page load timeout"},
		"tool without data": {fault: `{"code":-32000,"message":"no"}`, verdict: record.Failed, errors: "no"},
		"tool, text data":   {fault: `{"code":-32000,"message":"","data":"why"}`, verdict: record.Failed, errors: "why"},
		"tool, silent":      {fault: `{"code":-32000}`, verdict: record.Failed, errors: "the agent failed"},
		"timeout": {
			fault: `{"code":-32001,"message":"took too long"}`, verdict: record.TimedOut,
			errors: "timeout exceeded: took too long",
		},
		"credentials": {
			fault: `{"code":-32002,"message":"who?"}`, verdict: record.Errored,
			errors: "the agent c1 answered with error -32002: who?",
		},
		"resource": {
			fault: `{"code":-32005,"message":"down","data":{"error":"dns"}}`, verdict: record.Errored,
			errors: "the agent c1 answered with error -32005: down: dns",
		},
		"own code": {fault: `{"code":7}`, verdict: record.Errored, errors: "the agent c1 answered with error 7"},
		"long": {
			fault: `{"code":-32603,"message":"` + long + `"}`, verdict: record.Errored,
			errors: "the agent c1 answered with error -32603: " + long[:4000] + "…",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, _ := run(t, answering(c.result, c.fault), "name: s\nconfig: {executor: remote, retry_errors: 0}\ntasks: [{id: a, prompt: x}]\n")
			got := res.Tasks[0].Trials[0]
			require.Equal(t, c.verdict, got.Verdict, got.Error)
			require.Equal(t, c.output, got.Output)
			require.Equal(t, c.errors, got.Error)
			require.Empty(t, got.Graders)
		})
	}
}

func TestToolCallsUsageAndTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := &fakeHub{answer: func(context.Context, *remote.Evaluation, func(remote.Status)) (*remote.Answer, error) {
			time.Sleep(5 * time.Second)
			at := time.Now().Add(-2 * time.Second).UTC().Format(time.RFC3339)
			return &remote.Answer{ClientID: "c1", Result: json.RawMessage(`{"status":"success","output":"done","executionTime":3000,"toolCalls":[
				{"tool":"open","timestamp":"` + at + `","duration":2400,"status":"success","args":{"url":"x"},"result":"ok"},
				{"name":"click","input":[1]}, {"tool":7}, "x", {"tool":"deep","args":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}],
				"metadata":{"usage":{"prompt_tokens":10,"completionTokens":5,"total_tokens":20},"retryCount":0},"cost":{"total":0.25}}`)}, nil
		}}
		exec, err := remote.New(hub).Open(t.Context(), executor.Settings{Options: &remote.Options{}})
		require.NoError(t, err)
		a := admission(1, nil, eval.Inputs{})
		room, err := exec.(executor.Admitter).Admit(t.Context(), a)
		require.NoError(t, err)
		var logged []string
		trial := &executor.Trial{
			Order: a.Order, Attempt: 1, Room: room, Prompt: "hi", Expand: func(text string) string { return text },
			Transcript: executor.NewTranscript(),
			Logf: func(level, format string, args ...any) {
				logged = append(logged, level+": "+fmt.Sprintf(format, args...))
			},
		}
		out, err := exec.Execute(t.Context(), trial)
		require.NoError(t, err)
		room.Release()
		require.NoError(t, exec.Close())
		require.Equal(t, &record.Usage{InputTokens: 10, OutputTokens: 5, TotalTokens: 20, CostUSD: 0.25}, out.Usage)
		require.Equal(t, 2*time.Second, out.Startup)
		require.Equal(t, []string{"warning: 3 tool calls cannot be decoded and are skipped"}, logged)
		b, err := json.Marshal(trial.Transcript.Close())
		require.NoError(t, err)
		require.JSONEq(t, `[
			{"type":"message","atMs":0,"role":"user","text":"hi"},
			{"type":"tool_call","atMs":3000,"tool":{"name":"open","arguments":{"url":"x"},"result":"ok","status":"success","durationMs":2400,"selfReported":true}},
			{"type":"tool_call","atMs":5000,"tool":{"name":"click","arguments":[1],"selfReported":true}},
			{"type":"message","atMs":5000,"role":"assistant","text":"done"}]`, string(b))
	})
}

// Updates become events at a bounded rate.
func TestUpdates(t *testing.T) {
	t.Parallel()
	half := 0.5
	hub := &fakeHub{answer: func(_ context.Context, _ *remote.Evaluation, status func(remote.Status)) (*remote.Answer, error) {
		status(remote.Status{Status: "running"})
		status(remote.Status{Status: "running", Progress: &half, Message: "Processing page content..."})
		for range 1000 {
			status(remote.Status{Status: "running"})
		}
		status(remote.Status{Status: "completed"})
		return &remote.Answer{Result: json.RawMessage(`1`)}, nil
	}}
	_, events := run(t, hub, "name: s\nconfig: {executor: remote}\ntasks: [{id: a, prompt: x}]\n")
	logs := runnertest.Logs(events)
	require.Contains(t, logs, "task a, trial 1: running 50 %: Processing page content...")
	require.Contains(t, logs, "task a, trial 1: completed")
	require.Less(t, strings.Count(logs, "trial 1: running"), 12) // five, and one for each half second
}

// Without a number of workers, all trials wait for agents at the same time.
func TestAllTrialsWaitAtOnce(t *testing.T) {
	t.Parallel()
	hub := &fakeHub{closed: make(chan struct{}), came: make(chan struct{}, 60)}
	r := newRunner(t, hub)
	live := runnertest.Start(t, r,
		"-- eval.yaml --\nname: s\nconfig: {executor: remote, trials_per_task: 30}\ntasks: [{id: a, prompt: x}, {id: b, prompt: x}]\n",
		record.Request{})
	for range 60 {
		<-hub.came
	}
	require.Equal(t, 60, live.Record().Config.ActualWorkers)
	close(hub.closed)
	<-live.Done()
	require.Equal(t, 60, runnertest.ResultOf(t, live).Summary.Trials.Passed)
}

func TestWorkersThatAreSaid(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]int{
		"parallel: false":            1,
		"parallel: true, workers: 3": 3,
		"parallel: true":             60,
		"trials_per_task: 2000":      1024,
		"parallel: true, trials_per_task: 2, max_workers: 5": 5,
	} {
		r := newRunner(t, &fakeHub{})
		config := "config: {executor: remote, " + config + "}"
		if !strings.Contains(config, "trials_per_task") {
			config = strings.Replace(config, "remote,", "remote, trials_per_task: 60,", 1)
		}
		p := runnertest.PlanOf(t, r, "-- eval.yaml --\nname: s\n"+config+"\ntasks: [{id: a, prompt: x}]\n")
		require.Equal(t, want, p.Workers(), config)
		p.Close()
	}
}

// If an agent leaves or is overloaded, the evaluation is sent again with the same id and attempt
// number.
func TestAgentLeaves(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	hub := &fakeHub{}
	hub.answer = func(_ context.Context, e *remote.Evaluation, _ func(remote.Status)) (*remote.Answer, error) {
		switch asked.Add(1) {
		case 1:
			return nil, &executor.RetryError{Reason: "the agent c1 left"}
		case 2:
			return &remote.Answer{ClientID: "c1", Error: &remote.Fault{Code: remote.CodeRateLimited}}, nil
		}
		return &remote.Answer{ClientID: "c1", Result: json.RawMessage(`"done"`)}, nil
	}
	res, events := run(t, hub, "name: s\nconfig: {executor: remote, retry_errors: 0}\ntasks: [{id: a, prompt: x}]\n")
	got := res.Tasks[0].Trials[0]
	require.Equal(t, record.Passed, got.Verdict, got.Error)
	require.Empty(t, got.Attempts)
	require.Len(t, hub.asked, 3)
	for _, e := range hub.asked {
		require.Equal(t, res.RunID+"/a/1/1/"+got.Hash[:12], e.ID)
	}
	logs := runnertest.Logs(events)
	require.Contains(t, logs, "task a, trial 1: the agent c1 left; waiting to be admitted again")
	require.Contains(t, logs, "task a, trial 1: the agent c1 is overloaded; waiting to be admitted again")
	require.Zero(t, hub.held)
}

func TestNoAgentHasTheTool(t *testing.T) {
	t.Parallel()
	hub := &fakeHub{refuse: fmt.Errorf("reserve: %w", &remote.NoToolError{Tool: "chat"})}
	res, _ := run(t, hub, "name: s\nconfig: {executor: remote, retry_errors: 5}\ntasks: [{id: a, prompt: x}]\n")
	got := res.Tasks[0].Trials[0]
	require.Equal(t, record.Errored, got.Verdict)
	require.Equal(t, `reserve: no agent has the tool "chat"`, got.Error)
	require.Empty(t, got.Attempts, "another try would meet the same")
}

func TestNoHub(t *testing.T) {
	t.Parallel()
	_, err := remote.New(nil).Open(t.Context(), executor.Settings{Options: &remote.Options{}})
	require.EqualError(t, err, "this program has no connection to a waza server, so it cannot reach agents")
	require.True(t, executor.IsPermanent(err))
}

// A run reports waiting trials: after a second if no agent is suitable, and every half minute.
func TestReports(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := &fakeHub{closed: make(chan struct{}), noServer: true}
		kind := remote.New(hub)
		start := time.Now()
		var mu sync.Mutex
		var reports []string
		logf := func(level, format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			reports = append(reports, fmt.Sprintf("%v %s: %s", time.Since(start), level, fmt.Sprintf(format, args...)))
		}
		take := func() []string {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			r := reports
			reports = nil
			return r
		}
		set := func(noServer bool, agents ...*remote.Agent) {
			hub.mu.Lock()
			defer hub.mu.Unlock()
			hub.noServer, hub.agents = noServer, agents
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		open := func(o *remote.Options) executor.Executor {
			exec, err := kind.Open(t.Context(), executor.Settings{Options: o})
			require.NoError(t, err)
			return exec
		}
		any, chosen := open(&remote.Options{}), open(&remote.Options{Remote: remote.Choice{Clients: []string{"c9"}, Tools: []string{"t"}}})
		var done sync.WaitGroup
		wait := func(exec executor.Executor, n int, in eval.Inputs) {
			done.Go(func() {
				_, err := exec.(executor.Admitter).Admit(ctx, admission(n, logf, in))
				require.EqualError(t, err, "enough")
			})
		}
		wait(any, 1, eval.Inputs{})
		time.Sleep(time.Second)
		require.Equal(t, []string{"1s warning: 1 trial waits for an agent: no waza server is running: start one with waza serve"}, take())
		wait(any, 2, eval.Inputs{Tool: "extract"})
		wait(any, 3, eval.Inputs{Tool: "extract"})
		wait(chosen, 4, eval.Inputs{})
		set(false)
		time.Sleep(29 * time.Second)
		require.Equal(t, []string{"30s warning: 4 trials wait for an agent: no agent is connected to the waza server"}, take())
		set(false, &remote.Agent{ClientID: "c1", State: remote.Ready, Tools: []string{"chat"}, MaxConcurrency: 1, Running: 1},
			&remote.Agent{ClientID: "c2", State: remote.Gone})
		time.Sleep(30 * time.Second)
		require.Equal(t, []string{"1m0s warning: 2 trials wait for an agent with the tool extract: the connected agent does not have it; " +
			"1 trial waits for an agent with the tool chat: the agent with it is busy; " +
			"1 trial waits for an agent with the tools chat, t: none of remote.clients is connected (c9)"}, take())
		set(false,
			&remote.Agent{ClientID: "c1", State: remote.Ready}, &remote.Agent{ClientID: "c2", State: remote.Ready},
			&remote.Agent{ClientID: "c9", State: remote.Paused, Tools: []string{"chat", "t"}})
		time.Sleep(30 * time.Second)
		require.Equal(t, []string{"1m30s info: 2 trials wait for an agent with the tool extract: all 2 agents with it are busy; " +
			"1 trial waits for an agent with the tool chat: all 3 agents with it are busy; " +
			"1 trial waits for an agent with the tools chat, t: the agents with it are paused"}, take())
		cancel(errors.New("enough"))
		done.Wait()
		time.Sleep(time.Minute)
		require.Empty(t, take())
		require.NoError(t, any.Close())
		require.NoError(t, chosen.Close())
	})
}

// The goroutine that reports ends with the executor, even while trials wait.
func TestCloseEndsReports(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := &fakeHub{}
		exec, err := remote.New(hub).Open(t.Context(), executor.Settings{Options: &remote.Options{}})
		require.NoError(t, err)
		room, err := exec.(executor.Admitter).Admit(t.Context(), admission(1, nil, eval.Inputs{}))
		require.NoError(t, err)
		room.Release()
		require.NoError(t, exec.Close()) // the bubble fails if a goroutine is left
	})
}

func TestFindings(t *testing.T) {
	t.Parallel()
	other := eval.Kind{Name: "other"}
	suite := `
-- eval.yaml --
name: s
skill_directories: []
config:
  executor: remote
  mcp_servers: {a: {}}
  instruction_files: [a.md]
  remote: {clients: [bob, 550e8400-e29b-11d4-a716-446655440000], tools: [""]}
tasks:
  - {id: a, inputs: {tool: t, url: "{{sit}}", input: {x: ["{{task_i}}"]}, priority: normal}}
  - {id: b, inputs: {input: {x: 1}, priority: soon}}
  - {id: c, inputs: {url: x}}
  - {id: d, prompt: x, follow_up_prompts: [y], files: [{path: a.txt, content: x}]}
-- a.md --
x
`
	require.Equal(t, []string{
		`warning: unknown key "skill_directories"`,
		`warning: executor remote: mcp_servers has no effect: remote agents are configured where they run`,
		`warning: executor remote: instruction_files has no effect: remote agents are configured where they run`,
		`error: executor remote: remote.clients[0] must be the id of an agent, a UUID v4 or UUID:TAB, got "bob"`,
		`error: executor remote: remote.clients[1] must be the id of an agent, a UUID v4 or UUID:TAB, got "550e8400-e29b-11d4-a716-446655440000"`,
		`error: executor remote: remote.tools[0] must have 1 to 256 bytes, got 0`,
		`warning: unknown variable "sit"; the text is sent unchanged`,
		`warning: unknown variable "task_i"; the text is sent unchanged`,
		`error: inputs.priority must be one of low, normal, high, got "soon"`,
		`error: task "c" has no prompt`,
		`warning: follow_up_prompts has no effect with executor remote: its agents get only one prompt`,
		`warning: executor remote sends no files to its agents; only graders see these`,
	}, findings(t, suite, ""))

	suite = `
-- eval.yaml --
name: s
config: {executor: other}
tasks:
  - {id: a, prompt: p, inputs: {tool: t, input: 1}}
  - {id: b, inputs: {tool: t}}
`
	require.Equal(t, []string{
		`warning: tool has no effect with executor other: only executor remote uses it`,
		`warning: input has no effect with executor other: only executor remote uses it`,
		`error: task "b" has no prompt`,
		`warning: tool has no effect with executor other: only executor remote uses it`,
	}, findings(t, suite, "", other))
	// Running the suite with a different executor is not an error.
	require.Equal(t, []string{
		`warning: task "b" has no prompt; executors other than remote get an empty one`,
	}, findings(t, strings.Replace(suite, "executor: other", "executor: remote", 1), "other", other))
}

// The content hash of a trial covers the input of the agent.
func TestInputsAreContent(t *testing.T) {
	t.Parallel()
	hashes := map[string]bool{}
	for _, in := range []string{
		"prompt: x", "prompt: x, tool: t", "prompt: x, url: t", "prompt: x, input: t", "prompt: x, input: {t: 1}",
		"prompt: x, priority: high",
	} {
		p := runnertest.PlanOf(t, newRunner(t, &fakeHub{}),
			"-- eval.yaml --\nname: s\nconfig: {executor: remote}\ntasks: [{id: a, inputs: {"+in+"}}]\n")
		hashes[p.Tasks[0].Hash] = true
		p.Close()
	}
	require.Len(t, hashes, 6)
}

// Agents answer a known id with their earlier answer, so the id must depend on the content.
func TestAttemptIDNamesTheContent(t *testing.T) {
	t.Parallel()
	o := record.Order{RunID: "r", TaskID: "t", Num: 2, Hash: "30709882cb756f403a24850926b5c44e"}
	require.Equal(t, "r/t/2/1/30709882cb75", executor.AttemptID(&o, 1))
	o.Hash = "7f67e14f28c2cae28087a9349467ca19"
	require.Equal(t, "r/t/2/1/7f67e14f28c2", executor.AttemptID(&o, 1))
}
