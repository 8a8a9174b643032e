package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/eval"
	"waza/runner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result is a whole result as its readers decode it.
type result struct {
	RunID   string          `json:"runId"`
	Status  runner.Status   `json:"status"`
	Error   string          `json:"error"`
	Summary *runner.Summary `json:"summary"`
	Config  map[string]any  `json:"config"`
	Tasks   []struct {
		runner.TaskRef
		runner.TaskResult
		Trials []runner.TrialResult `json:"trials"`
	} `json:"tasks"`
}

func newRunner(t *testing.T) *runner.Runner {
	t.Helper()
	r, err := runner.New(runner.Options{StateDir: t.TempDir()})
	require.NoError(t, err)
	return r
}

// load writes a txtar archive into a directory and loads its eval.yaml, which
// must have no errors.
func load(t *testing.T, r *runner.Runner, files string) *eval.Suite {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(files)).Files {
		path := filepath.Join(dir, f.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, f.Data, 0o755))
	}
	suite, ds, err := eval.Load(filepath.Join(dir, "eval.yaml"), eval.Options{Vocabulary: r.Vocabulary()})
	require.NoError(t, err)
	require.False(t, ds.HasErrors(), "%v", ds)
	return suite
}

func start(t *testing.T, r *runner.Runner, files string, req runner.Request) *runner.Run {
	t.Helper()
	plan, err := r.Plan(load(t, r, files), req)
	require.NoError(t, err)
	run, err := r.Start(plan)
	require.NoError(t, err)
	t.Cleanup(func() {
		run.Cancel()
		<-run.Done()
	})
	return run
}

// follow returns all events of a run from one on, until its end.
func follow(t *testing.T, h runner.Handle, from int64) []*runner.Event {
	t.Helper()
	var events []*runner.Event
	sub := h.Subscribe(from)
	for {
		batch, err := sub.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return events
		}
		require.NoError(t, err)
		events = append(events, batch...)
	}
}

func resultOf(t *testing.T, h runner.Handle) result {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, h.WriteResult(&b))
	var res result
	require.NoError(t, json.Unmarshal(b.Bytes(), &res), "%s", b.Bytes())
	return res
}

// run runs a suite to its end.
func run(t *testing.T, files string, req runner.Request) (result, []*runner.Event) {
	t.Helper()
	r := newRunner(t)
	live := start(t, r, files, req)
	events := follow(t, live, 1)
	<-live.Done()
	h, err := r.Run(live.ID())
	require.NoError(t, err)
	return resultOf(t, h), events
}

// outline gives one line per event, for comparing.
func outline(events []*runner.Event) string {
	var b strings.Builder
	for _, e := range events {
		if e.Type == runner.Log {
			continue
		}
		b.WriteString(string(e.Type))
		if e.TaskID != "" {
			b.WriteString(" " + e.TaskID)
		}
		if e.TrialNum > 0 {
			fmt.Fprintf(&b, " %d/%d", e.TrialNum, e.TotalTrials)
		}
		if e.Verdict != "" {
			b.WriteString(" " + string(e.Verdict))
		}
		if e.Status != "" {
			b.WriteString(" " + string(e.Status))
		}
		b.WriteString("\n")
	}
	return b.String()
}

const twoTasks = `
-- eval.yaml --
name: two
config:
  trials_per_task: 2
  mock:
    replies:
      - match: good
        output: all good
      - match: bad
        trials: [2]
        output: all good
tasks:
  - id: a
    prompt: be good
    graders:
      - {type: text, name: says_good, config: {contains: [all good]}}
  - id: b
    prompt: be bad
    graders:
      - {type: text, name: says_good, config: {contains: [all good]}}
`

func TestEvents(t *testing.T) {
	t.Parallel()
	res, events := run(t, twoTasks, runner.Request{})
	require.Equal(t, `run_start
task_start a
trial_start a 1/2
trial_complete a 1/2 passed
trial_start a 2/2
trial_complete a 2/2 passed
task_complete a passed
task_start b
trial_start b 1/2
trial_complete b 1/2 failed
trial_start b 2/2
trial_complete b 2/2 passed
task_complete b failed
run_complete completed
end completed
`, outline(events))
	for i, e := range events {
		require.EqualValues(t, i+1, e.Seq)
	}
	require.Equal(t, runner.StatusCompleted, res.Status)
	require.Equal(t, 2, res.Summary.Total)
	require.Equal(t, 1, res.Summary.Passed)
	require.Equal(t, 1, res.Summary.Failed)
	require.Equal(t, 0.5, *res.Summary.PassRate)
	require.Equal(t, 1, res.Summary.Flaky)
	require.Equal(t, 4, res.Summary.Trials.Total)
	require.Equal(t, 3, res.Summary.Trials.Passed)
	require.True(t, res.Tasks[1].Flaky)
	require.Len(t, res.Tasks[1].Trials, 2)
	require.Equal(t, "Mock response for: be bad", res.Tasks[1].Trials[0].Output)
	require.Equal(t, []runner.Reason{{Verdict: runner.Failed, Grader: "says_good", Message: res.Tasks[1].Trials[0].Graders[0].Feedback, Trials: 1}}, res.Tasks[1].Reasons)
}

// The hash names a trial by its content: the same in another directory and
// process, another for each trial, and another when anything that matters changes.
func TestHashes(t *testing.T) {
	t.Parallel()
	hashes := func(files string, req runner.Request) []string {
		res, _ := run(t, files, req)
		var out []string
		for _, task := range res.Tasks {
			for _, trial := range task.Trials {
				out = append(out, trial.Hash)
			}
		}
		return out
	}
	first := hashes(twoTasks, runner.Request{})
	require.Equal(t, first, hashes(twoTasks, runner.Request{Workers: 3}))
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(first))), 4)
	require.NotEqual(t, first[0], hashes(twoTasks, runner.Request{Model: "other"})[0])
	changed := hashes(strings.Replace(twoTasks, "be bad", "be bad!", 1), runner.Request{})
	require.Equal(t, first[:2], changed[:2])
	require.NotEqual(t, first[2], changed[2])
	require.Equal(t, first[3:], hashes(twoTasks, runner.Request{Tasks: []string{"b"}, Trial: 2}))
}

// What a trial depends on beyond its YAML is part of its name too: an agent's
// script, a grader's, a schema, a snapshot.
func TestHashesOfFiles(t *testing.T) {
	t.Parallel()
	const files = `
-- eval.yaml --
name: files
config: {executor: command, command: [sh, agent.sh], max_attempts: 1}
tasks:
  - id: a
    prompt: x
    graders:
      - {type: program, config: {command: sh, args: [check.sh]}}
      - {type: json_schema, config: {schema_file: schema.json}}
      - {type: diff, config: {expected_files: [{path: out.txt, snapshot: out.txt}]}}
-- agent.sh --
echo '{"k":1}' | tee out.txt
-- check.sh --
exit 0
-- schema.json --
{"type":"object"}
-- fixtures/out.txt --
{"k":1}
`
	r := newRunner(t)
	name := func(files string) string {
		p, err := r.Plan(load(t, r, files), runner.Request{})
		require.NoError(t, err)
		defer p.Close()
		return p.Tasks[0].Hash
	}
	first := name(files)
	require.Equal(t, first, name(files))
	for _, change := range []string{"tee out.txt", "exit 0", `"object"`, "{\"k\":1}\n"} {
		i := strings.LastIndex(files, change)
		require.NotEqual(t, first, name(files[:i]+" "+files[i:]), change)
	}
}

// Errors are neither failures nor passes: they are retried, reported apart, and
// no pass rate counts them.
func TestErrors(t *testing.T) {
	t.Parallel()
	res, events := run(t, `
-- eval.yaml --
name: errors
config:
  retry_errors: 1
  mock: {replies: [{match: broken, trials: [1], error: no network}]}
tasks:
  - {id: broken, prompt: broken}
  - {id: fine, prompt: fine}
`, runner.Request{})
	trial := res.Tasks[0].Trials[0]
	require.Equal(t, runner.Errored, trial.Verdict)
	require.Equal(t, "no network", trial.Error)
	require.Nil(t, trial.Score)
	require.Len(t, trial.Attempts, 1)
	require.Equal(t, runner.Errored, res.Tasks[0].Verdict)
	require.Nil(t, res.Tasks[0].TaskResult.Trials.PassRate)
	require.Equal(t, 1, res.Summary.Errors)
	require.Equal(t, 1.0, *res.Summary.PassRate)
	require.Contains(t, logs(events), "task broken, trial 1: no network; trying again")
}

func logs(events []*runner.Event) string {
	var b strings.Builder
	for _, e := range events {
		if e.Type == runner.Log {
			fmt.Fprintf(&b, "%s %s\n", e.Level, e.Message)
		}
	}
	return b.String()
}

// A trial whose graders failed is tried again; the last attempt counts, and all are recorded.
func TestMaxAttempts(t *testing.T) {
	t.Parallel()
	res, _ := run(t, `
-- eval.yaml --
name: attempts
config:
  max_attempts: 3
  mock: {replies: [{output: "attempt {{attempt}}"}]}
tasks:
  - id: third
    prompt: x
    graders: [{type: text, config: {contains: ["attempt 3"]}}]
  - id: never
    prompt: x
    graders: [{type: text, config: {contains: ["attempt 4"]}}]
`, runner.Request{})
	third, never := res.Tasks[0].Trials[0], res.Tasks[1].Trials[0]
	require.Equal(t, runner.Passed, third.Verdict)
	require.Len(t, third.Attempts, 2)
	require.Equal(t, "attempt 1", third.Attempts[0].Output)
	require.Equal(t, runner.Failed, third.Attempts[0].Verdict)
	require.Equal(t, runner.Failed, never.Verdict)
	require.Equal(t, "attempt 3", never.Output)
}

func TestFailFast(t *testing.T) {
	t.Parallel()
	res, events := run(t, `
-- eval.yaml --
name: fast
config: {fail_fast: true, trials_per_task: 2}
tasks:
  - {id: a, prompt: x}
  - {id: b, prompt: x, graders: [{type: text, config: {contains: [nothing like it]}}]}
  - {id: c, prompt: x}
`, runner.Request{})
	require.Equal(t, runner.StatusCompleted, res.Status)
	require.Equal(t, runner.Skipped, res.Tasks[2].Verdict)
	require.Len(t, res.Tasks[2].Trials, 2, "skipped trials are listed")
	require.Equal(t, 1, res.Summary.Skipped)
	require.NotContains(t, outline(events), "task_start c")
	require.Contains(t, outline(events), "trial_complete c 2/2 skipped")
}

func TestSelection(t *testing.T) {
	t.Parallel()
	const files = `
-- eval.yaml --
name: selection
tasks:
  - {id: red-1, name: First, prompt: x, tags: [warm, even]}
  - {id: red-2, prompt: x, tags: [warm]}
  - {id: blue-1, prompt: x, tags: [cold]}
`
	r := newRunner(t)
	suite := load(t, r, files)
	ids := func(req runner.Request) string {
		p, err := r.Plan(suite, req)
		if err != nil {
			return err.Error()
		}
		defer p.Close()
		var ids []string
		for _, task := range p.Tasks {
			ids = append(ids, task.ID)
		}
		return strings.Join(ids, " ")
	}
	for _, c := range []struct {
		req  runner.Request
		want string
	}{
		{runner.Request{}, "red-1 red-2 blue-1"},
		{runner.Request{Tasks: []string{"red-*"}}, "red-1 red-2"},
		{runner.Request{Tasks: []string{"First", "blue-1"}}, "red-1 blue-1"},
		{runner.Request{Tags: []string{"{cold,even}"}}, "red-1 blue-1"},
		{runner.Request{Tasks: []string{"red-*"}, Tags: []string{"even"}}, "red-1"},
		{runner.Request{Task: "red-1"}, "red-1"},
		{runner.Request{Task: "First"}, `no task of the suite matches task "First"; there are red-1, red-2, blue-1`},
		{runner.Request{Tasks: []string{"green"}}, `no task of the suite matches task "green"; there are red-1, red-2, blue-1`},
		{runner.Request{Tags: []string{"hot"}}, `no task of the suite matches tag "hot"; there are cold, even, warm`},
		{runner.Request{Tasks: []string{"blue-1"}, Tags: []string{"warm"}}, `no task of the suite matches both task and tag "blue-1", "warm"`},
		{runner.Request{Trial: 2}, `no task of the suite matches trial "2"; there are trials 1 to 1`},
		{runner.Request{Trials: 1 << 62}, "4611686018427387904 trials of 3 tasks each are more than the limit of 333333"},
		{runner.Request{Workers: 10_001}, "10001 workers are more than the limit of 10000"},
		{runner.Request{Executor: "mok"}, `unknown executor "mok"; known are mock, command, copilot-sdk (did you mean "mock"?)`},
	} {
		require.Equal(t, c.want, ids(c.req))
	}
}

// An executor that cannot be had makes errors that say so, at once and not by
// trying again.
func TestExecutorElsewhere(t *testing.T) {
	t.Parallel()
	res, _ := run(t, twoTasks, runner.Request{Executor: "copilot"})
	require.Equal(t, "copilot-sdk", res.Config["executor"])
	require.Equal(t, 4, res.Summary.Trials.Errors)
	require.Contains(t, res.Tasks[0].Trials[0].Error, "cannot drive copilot-sdk; choose another executor")
	require.Empty(t, res.Tasks[0].Trials[0].Attempts)
}

// The deadline covers executor and graders, and ends the whole process tree.
func TestTimeout(t *testing.T) {
	t.Parallel()
	res, _ := run(t, `
-- eval.yaml --
name: slow
config:
  executor: command
  command: ["sh", "agent.sh"]
  timeout_seconds: 0.5
  parallel: true
tasks:
  - {id: agent, prompt: sleep}
  - {id: grader, prompt: quick, graders: [{type: program, config: {command: sh, args: ["-c", "sleep 1000 & wait"], timeout: 1000}}]}
-- agent.sh --
read prompt
echo started
if [ "$prompt" = sleep ]; then sleep 1000; fi
`, runner.Request{})
	for _, task := range res.Tasks {
		require.Equal(t, runner.TimedOut, task.Verdict, task.ID)
		require.Equal(t, "timeout exceeded", task.Trials[0].Error)
		require.Equal(t, "started", task.Trials[0].Output, "what there was is kept")
	}
	require.Equal(t, 2, res.Summary.Timeouts)
	require.Equal(t, 0.0, *res.Summary.PassRate)
}

func TestCancel(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	live := start(t, r, `
-- eval.yaml --
name: long
config:
  trials_per_task: 10
  parallel: true
  workers: 4
  mock: {latency_ms: 1000000}
tasks: [{id: a, prompt: x}, {id: b, prompt: x}]
`, runner.Request{})
	sub := live.Subscribe(1)
	for seen := 0; seen < 4; {
		events, err := sub.Next(t.Context())
		require.NoError(t, err)
		for _, e := range events {
			if e.Type == runner.TrialStart {
				seen++
			}
		}
	}
	live.Cancel()
	events := follow(t, live, 1)
	<-live.Done()
	require.Equal(t, runner.End, events[len(events)-1].Type)
	h, err := r.Run(live.ID())
	require.NoError(t, err)
	res := resultOf(t, h)
	require.Equal(t, runner.StatusCancelled, res.Status)
	require.Equal(t, 20, res.Summary.Trials.Cancelled)
	require.Equal(t, 2, res.Summary.Cancelled)
	require.Nil(t, res.Summary.PassRate)
}

// A run that is stopped finishes what runs and skips the rest.
func TestStop(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	live := start(t, r, `
-- eval.yaml --
name: long
config: {trials_per_task: 50, mock: {latency_ms: 5}}
tasks: [{id: a, prompt: x}]
`, runner.Request{})
	sub := live.Subscribe(1)
	for stopped := false; !stopped; {
		events, err := sub.Next(t.Context())
		require.NoError(t, err)
		for _, e := range events {
			if e.Type == runner.TrialComplete && !stopped {
				live.Stop()
				stopped = true
			}
		}
	}
	<-live.Done()
	p, err := live.Progress()
	require.NoError(t, err)
	require.Equal(t, runner.StatusCancelled, p.Status)
	require.Positive(t, p.Trials.Passed)
	require.Positive(t, p.Trials.Skipped)
	require.Equal(t, 50, p.Trials.Done())
	// It used to pass with the trials it had.
	require.Equal(t, runner.Skipped, resultOf(t, live).Tasks[0].Verdict)
}

func TestHooks(t *testing.T) {
	t.Parallel()
	res, events := run(t, `
-- eval.yaml --
name: hooks
config: {verbose: true, trials_per_task: 2}
hooks:
  before_run: [{command: "echo run > log && cat log"}]
  before_task: [{command: 'echo "before $WAZA_TASK_ID $COLOUR" >> log'}]
  after_task: [{command: 'echo "after $WAZA_TASK_ID" >> log'}]
  after_run: [{command: "cat log; exit 3", exit_codes: [3], error_on_fail: true}, {command: "pwd", working_directory: sub}]
tasks:
  - {id: a, inputs: {prompt: x, environment: {COLOUR: red}}}
  - {id: b, prompt: x}
-- sub/keep --
`, runner.Request{})
	require.Equal(t, runner.StatusCompleted, res.Status, res.Error)
	require.Contains(t, logs(events), "after_run hook: run\nbefore a red\nafter a\nbefore b \nafter b")
	require.Contains(t, logs(events), "/sub\n")
}

func TestHookFailures(t *testing.T) {
	t.Parallel()
	res, events := run(t, `
-- eval.yaml --
name: hooks
hooks:
  before_task:
    - {command: "echo careless >&2; exit 1"}
    - {command: 'test "$WAZA_TASK_ID" = fine', error_on_fail: true}
tasks: [{id: broken, prompt: x}, {id: fine, prompt: x}]
`, runner.Request{})
	require.Equal(t, runner.Errored, res.Tasks[0].Verdict)
	require.Contains(t, res.Tasks[0].Trials[0].Error, `before_task hook "test \"$WAZA_TASK_ID\" = fine": exit status 1`)
	require.Empty(t, res.Tasks[0].Trials[0].Attempts, "trying again would meet the same fault")
	require.Equal(t, runner.Passed, res.Tasks[1].Verdict)
	require.Contains(t, logs(events), `warning before_task hook "echo careless >&2; exit 1": exit status 1: careless`)

	res, events = run(t, `
-- eval.yaml --
name: hooks
config: {verbose: true}
hooks: {before_run: [{command: "exit 1", error_on_fail: true}], after_run: [{command: echo clean}]}
tasks: [{id: a, prompt: x}]
`, runner.Request{})
	require.Equal(t, runner.StatusFailed, res.Status)
	require.Contains(t, res.Error, `before_run hook "exit 1": exit status 1`)
	require.Equal(t, runner.Skipped, res.Tasks[0].Verdict)
	require.Equal(t, runner.End, events[len(events)-1].Type)
	require.Contains(t, logs(events), "after_run hook", "what cleans up runs all the same")
}

// Subscribers that come at any time and place get each event once.
func TestSubscribe(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	live := start(t, r, `
-- eval.yaml --
name: many
config: {trials_per_task: 3000, parallel: true, workers: 4}
tasks: [{id: a, prompt: x}, {id: b, prompt: x}]
`, runner.Request{})
	idle := live.Subscribe(1) // reads only when all is over
	type got struct {
		from   int64
		events []*runner.Event
	}
	results := make(chan got)
	froms := []int64{-5, 1, 2, 100, 5000, 12000}
	for _, from := range froms {
		go func() { results <- got{from, follow(t, live, from)} }()
	}
	check := func(from int64, events []*runner.Event, total int64) {
		require.EqualValues(t, total-max(1, from)+1, len(events), "from %d", from)
		for i, e := range events {
			require.EqualValues(t, max(1, from)+int64(i), e.Seq)
		}
		require.Equal(t, runner.End, events[len(events)-1].Type)
	}
	const total = 1 + 2*(2+6000/2*2) + 2 + 2 // run_start; per task start, complete, trials; task logs; run_complete, end
	for range froms {
		g := <-results
		check(g.from, g.events, total)
	}
	<-live.Done()
	var late []*runner.Event
	for {
		batch, err := idle.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		late = append(late, batch...)
	}
	check(1, late, total)

	past, err := r.Run(live.ID())
	require.NoError(t, err)
	require.NotSame(t, live, past)
	check(7, follow(t, past, 7), total)
	require.Empty(t, follow(t, past, total+1))

	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	<-ctx.Done()
	_, err = start(t, r, twoTasks, runner.Request{}).Subscribe(1 << 40).Next(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// A run whose process died is rebuilt from its journal, as far as it came.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: dir})
	require.NoError(t, err)
	live := start(t, r, twoTasks, runner.Request{})
	<-live.Done()
	journal := filepath.Join(dir, "runs", live.ID(), "journal.jsonl")
	b, err := os.ReadFile(journal)
	require.NoError(t, err)
	lines := bytes.SplitAfter(b, []byte("\n"))
	require.NoError(t, os.WriteFile(journal, bytes.Join(lines[:10], nil)[:len(bytes.Join(lines[:10], nil))-3], 0o600))
	require.NoError(t, os.Remove(filepath.Join(dir, "runs", live.ID(), "result.json")))

	h, err := r.Run(live.ID())
	require.NoError(t, err)
	p, err := h.Progress()
	require.NoError(t, err)
	require.Equal(t, runner.StatusInterrupted, p.Status)
	require.Equal(t, 4, p.Trials.Total)
	require.Equal(t, 2, p.Trials.Passed)
	res := resultOf(t, h)
	require.Equal(t, runner.StatusInterrupted, res.Status)
	require.Len(t, res.Tasks[0].Trials, 2)
	require.Len(t, follow(t, h, 1), 9)

	infos, err := r.List(0)
	require.NoError(t, err)
	require.Len(t, infos, 1)
	require.Equal(t, runner.StatusInterrupted, infos[0].Status)
	_, err = r.Run("nope")
	require.ErrorIs(t, err, runner.ErrRunNotFound)
}

// Nothing of a run is left in its directory but its record.
func TestNothingLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: dir})
	require.NoError(t, err)
	live := start(t, r, `
-- eval.yaml --
name: files
config: {executor: command, command: "mkdir locked && touch locked/x && chmod 500 locked && cat a/in.txt"}
tasks:
  - id: a
    inputs: {prompt: x, files: [{path: a/in.txt, content: "for {{task_id}}"}, fixture.bin]}
    graders:
      - {type: file, config: {must_exist: [locked/x, fixture.bin]}}
      - {type: text, config: {contains: [for a]}}
-- fixtures/fixture.bin --
bytes
`, runner.Request{})
	<-live.Done()
	require.Equal(t, runner.Passed, resultOf(t, live).Tasks[0].Verdict)
	entries, err := os.ReadDir(filepath.Join(dir, "runs", live.ID()))
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.Equal(t, []string{"journal.jsonl", "result.json", "run.json"}, names)
}

// Workspaces that a killed process left are removed by the next run, those of
// runs that go on are not.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	work := func(id string) string { return filepath.Join(dir, "work", id, "1-a-1-1") }
	r, err := runner.New(runner.Options{StateDir: dir})
	require.NoError(t, err)
	alive := start(t, r, `
-- eval.yaml --
name: long
config: {mock: {latency_ms: 1000000}}
tasks: [{id: a, prompt: x}]
`, runner.Request{})
	require.NoError(t, os.MkdirAll(work(alive.ID()), 0o700))
	require.NoError(t, os.MkdirAll(work("20200101-000000-killed"), 0o500))
	<-start(t, r, twoTasks, runner.Request{}).Done()
	require.DirExists(t, work(alive.ID()))
	require.NoDirExists(t, filepath.Join(dir, "work", "20200101-000000-killed"))
}

// A closed runner ends its runs and starts no more.
func TestClose(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	live := start(t, r, `
-- eval.yaml --
name: long
config: {mock: {latency_ms: 1000000}}
tasks: [{id: a, prompt: x}]
`, runner.Request{})
	require.NoError(t, r.Close(t.Context()))
	p, err := live.Progress()
	require.NoError(t, err)
	require.Equal(t, runner.StatusCancelled, p.Status)
	plan, err := r.Plan(load(t, r, twoTasks), runner.Request{})
	require.NoError(t, err)
	_, err = r.Start(plan)
	require.ErrorIs(t, err, runner.ErrClosed)
}

// A trial that was to be tried again when the run was cancelled had not ended:
// its verdict was that of the attempt before.
func TestCancelBetweenAttempts(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	live := start(t, r, `
-- eval.yaml --
name: retries
config: {retry_errors: 1000, mock: {replies: [{error: no network}]}}
tasks: [{id: a, prompt: x}]
`, runner.Request{})
	sub := live.Subscribe(1)
	for waiting := false; !waiting; {
		events, err := sub.Next(t.Context())
		require.NoError(t, err)
		waiting = strings.Contains(logs(events), "trying again")
	}
	live.Cancel()
	<-live.Done()
	trial := resultOf(t, live).Tasks[0].Trials[0]
	require.Equal(t, runner.Cancelled, trial.Verdict)
	require.Equal(t, runner.Errored, trial.Attempts[0].Verdict)
}

// Followers of a run whose journal could not take the end were told of none.
func TestEndThatWasNotRecorded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: dir})
	require.NoError(t, err)
	live := start(t, r, twoTasks, runner.Request{})
	<-live.Done()
	journal := filepath.Join(dir, "runs", live.ID(), "journal.jsonl")
	b, err := os.ReadFile(journal)
	require.NoError(t, err)
	lines := bytes.SplitAfter(b, []byte("\n"))
	require.NoError(t, os.WriteFile(journal, bytes.Join(lines[:7], nil), 0o600))
	h, err := r.Run(live.ID())
	require.NoError(t, err)
	events := follow(t, h, 3)
	require.Len(t, events, 6)
	require.Equal(t, runner.End, events[5].Type)
	require.EqualValues(t, 8, events[5].Seq)
	require.Empty(t, follow(t, h, 8), "nothing comes after the end")
}

// A workspace is absolute also when the state directory is not.
func TestRelativeStateDir(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	require.NoError(t, err)
	rel, err := filepath.Rel(here, t.TempDir())
	require.NoError(t, err)
	r, err := runner.New(runner.Options{StateDir: rel})
	require.NoError(t, err)
	live := start(t, r, `
-- eval.yaml --
name: where
config: {executor: command, command: 'printf %s "$WAZA_WORKSPACE_DIR"'}
tasks: [{id: a, prompt: x}]
`, runner.Request{})
	<-live.Done()
	require.True(t, filepath.IsAbs(resultOf(t, live).Tasks[0].Trials[0].Output))
}
