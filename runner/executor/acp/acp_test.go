//go:build unix

package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/executor"
	"waza/runner/executor/acp"
	"waza/runner/plan"
	"waza/runner/record"
)

type fixture struct {
	suite  *eval.Suite
	exec   executor.Executor
	starts string // file to which the agent adds a line at each start

	mu   sync.Mutex // guards logs
	logs strings.Builder
}

type setup struct {
	config  string // further keys of config
	agent   string // further keys of the agent
	mode    string // behavior of the fake agent before its first prompt
	workers int
	model   string
	// maxTrial limits the bytes of one trial if positive, see [acp.SetMaxTrial].
	maxTrial int64
	// grace is the time in which the agent has to stop if positive, see [acp.SetGrace].
	grace time.Duration
	// sandboxes is set by tests of sandboxes; nil means none.
	sandboxes plan.Sandboxes
}

// open creates a suite for the fake agent and opens its executor.
func open(t *testing.T, s setup) *fixture {
	t.Helper()
	dir := t.TempDir()
	f := &fixture{starts: filepath.Join(dir, "starts")}
	f.suite = load(t, dir, s.lines(t, dir))
	o := f.suite.ExecutorOptions["acp"]
	var err error
	f.exec, err = acp.Kind.Open(t.Context(), executor.Settings{Suite: f.suite, Options: o, Model: s.model, Workers: s.workers})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.exec.Close()) })
	return f
}

// lines returns the config lines of a suite that drives the fake agent.
func (s setup) lines(t testing.TB, dir string) string {
	t.Helper()
	config := "  executor: acp\n" + s.config
	if strings.Contains(s.config, "agent:") {
		return config
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	mode := ""
	if s.mode != "" {
		mode = "FAKE_MODE: " + s.mode + ", "
	}
	return config + fmt.Sprintf("  agent:\n    command: [%q]\n    env: {FAKE_AGENT: '1', GORACE: "+
		"atexit_sleep_ms=0, %sFAKE_STARTS: %q, FAKE_API_KEY: %s}\n%s",
		exe, mode, filepath.Join(dir, "starts"), secretKey, s.agent)
}

// secretKey is in the environment of the fake agent.
const secretKey = "sk-very-secret"

var vocabulary = &eval.Vocabulary{Executors: []eval.Kind{acp.Kind.Kind, acp.CopilotKind.Kind}}

func load(t *testing.T, dir, config string) *eval.Suite {
	t.Helper()
	suite, ds := tryLoad(t, dir, config)
	require.Empty(t, ds.Errors())
	return suite
}

func tryLoad(t *testing.T, dir, config string) (*eval.Suite, decode.Diagnostics) {
	t.Helper()
	file := filepath.Join(dir, "eval.yaml")
	text := "name: t\nconfig:\n" + config + "tasks: [{id: a, prompt: x}]\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	suite, ds, err := eval.Load(file, eval.Options{Vocabulary: vocabulary})
	require.NoError(t, err)
	return suite, ds
}

func (f *fixture) trial(t *testing.T, prompts ...string) *executor.Trial {
	dir := t.TempDir()
	return &executor.Trial{
		Order: &record.Order{Suite: f.suite, Task: f.suite.Tasks[0], Num: 1}, Attempt: 1, Prompt: prompts[0], FollowUps: prompts[1:],
		Dir: func() (string, error) { return dir, nil }, Env: os.Environ(), Transcript: executor.NewTranscript(),
		Logf: func(level, format string, args ...any) {
			f.mu.Lock()
			defer f.mu.Unlock()
			fmt.Fprintf(&f.logs, level+" "+format+"\n", args...)
		},
	}
}

// do runs a trial that must end normally, and returns its output.
func (f *fixture) do(t *testing.T, prompts ...string) string {
	t.Helper()
	out, err := f.exec.Execute(t.Context(), f.trial(t, prompts...))
	require.NoError(t, err)
	return out.Output
}

func (f *fixture) processes(t *testing.T) int { return starts(t, f.starts) }

// starts returns the number of starts of the fake agent, which adds a line to a file at each
// start.
func starts(t testing.TB, file string) int {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return strings.Count(string(b), "\n")
}

// entries closes the transcript and returns it without times.
func entries(tr *executor.Trial) []record.Entry {
	all := tr.Transcript.Close()
	for i := range all {
		all[i].AtMS = 0
		if all[i].Tool != nil {
			tool := *all[i].Tool
			tool.DurationMS = min(tool.DurationMS, 1)
			all[i].Tool = &tool
		}
	}
	return all
}

func TestTranscript(t *testing.T) {
	t.Parallel()
	f := open(t, setup{})
	prompt := `think let me
think  see
say I'll
say  look
tool {"toolCallId":"1","title":"bash","kind":"execute","status":"pending","rawInput":{}}
tool {"sessionUpdate":"tool_call_update","toolCallId":"1","title":"List files","status":"in_progress","rawInput":{"command":"ls"}}
update {"sessionUpdate":"plan","entries":[{"content":"look","priority":"high","status":"completed"},{"content":"report","priority":"low","status":"pending"}]}
tool {"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","rawOutput":{"output":"a.txt"}}
tool {"toolCallId":"2","title":"skill","kind":"other","status":"completed","rawInput":{"name":"explainer"},"content":[{"type":"content","content":{"type":"text","text":"loaded"}}]}
update {"sessionUpdate":"something_new","x":1}
say There is
say  a.txt
usage 10 5`
	tr := f.trial(t, prompt, "say bye\nusage 20 7")
	out, err := f.exec.Execute(t.Context(), tr)
	require.NoError(t, err)
	require.Equal(t, "bye", out.Output)
	require.Equal(t, &record.Usage{InputTokens: 30, OutputTokens: 12, TotalTokens: 42}, out.Usage)
	want := []record.Entry{
		{Type: record.EntryMessage, Role: "user", Text: prompt},
		{Type: record.EntryThought, Text: "let me see"},
		{Type: record.EntryMessage, Role: "assistant", Text: "I'll look"},
		{Type: record.EntryToolCall, Tool: &record.ToolCall{SelfReported: true, ID: "1", Name: "bash", Kind: "execute", Title: "List files", Status: "completed",
			Arguments: json.RawMessage(`{"command":"ls"}`), Result: json.RawMessage(`{"output":"a.txt"}`), DurationMS: 1}},
		{
			Type: record.EntryPlan,
			Plan: []record.PlanStep{{Text: "look", Priority: "high", Status: "completed"}, {Text: "report", Priority: "low", Status: "pending"}},
		},
		{Type: record.EntryToolCall, Tool: &record.ToolCall{SelfReported: true, ID: "2", Name: "skill", Kind: "other", Title: "skill", Status: "completed", Skill: "explainer",
			Arguments: json.RawMessage(`{"name":"explainer"}`), Result: json.RawMessage(`"loaded"`), DurationMS: 1}},
		{Type: record.EntrySkill, Text: "explainer"},
		{Type: record.EntryMessage, Role: "assistant", Text: "There is a.txt"},
		{Type: record.EntryStop, Text: "end_turn"},
		{Type: record.EntryMessage, Role: "user", Text: "say bye\nusage 20 7"},
		{Type: record.EntryMessage, Role: "assistant", Text: "bye"},
		{Type: record.EntryStop, Text: "end_turn"},
	}
	require.Empty(t, cmp.Diff(want, entries(tr)))
}

// The cold start of an agent is paid once per worker, not once per trial.
func TestOneProcessPerWorker(t *testing.T) {
	t.Parallel()
	f := open(t, setup{workers: 2})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				tr := f.trial(t, "cwd")
				out, err := f.exec.Execute(t.Context(), tr)
				dir, _ := tr.Dir()
				if err != nil || out.Output != dir {
					t.Errorf("output %q, error %v", out.Output, err)
				}
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, f.processes(t), 2)
}

// The agent's process has the environment of a task. Trials of a task with a different
// environment get a new process in the place of an idle one.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	f := open(t, setup{workers: 1})
	with := func(value string) *executor.Trial {
		tr := f.trial(t, "env COLOUR")
		task := *tr.Task
		task.Inputs.Environment = map[string]string{"COLOUR": value}
		tr.Task = &task
		tr.Env = append(tr.Env, "COLOUR="+value, "WAZA_TASK_ID=a")
		return tr
	}
	for _, value := range []string{"red", "red", "blue"} {
		out, err := f.exec.Execute(t.Context(), with(value))
		require.NoError(t, err)
		require.Equal(t, value, out.Output)
	}
	require.Equal(t, 2, f.processes(t))
	require.Empty(t, f.do(t, "env WAZA_TASK_ID"))
}

// An agent that dies fails only its current trial. The trial ends in error and can be retried.
func TestDeath(t *testing.T) {
	t.Parallel()
	f := open(t, setup{})
	for _, c := range []struct{ prompt, want string }{
		{"say so far\nstderr it broke\ndie 3", "the agent ended during the trial: exit status 3: it broke"},
		{"say so far\nkill", "the agent ended during the trial: ended by signal SIGKILL"},
		{"say so far\ndie 0", "the agent ended during the trial"},
	} {
		tr := f.trial(t, c.prompt)
		out, err := f.exec.Execute(t.Context(), tr)
		require.ErrorContains(t, err, c.want)
		require.False(t, executor.IsPermanent(err))
		require.NotErrorIs(t, err, executor.ErrTimeout)
		require.Equal(t, "so far", out.Output, err)
		all := entries(tr)
		require.Equal(t, record.EntryError, all[len(all)-1].Type)
		require.Equal(t, "fine", f.do(t, "say fine"))
	}
	// An agent that dies between trials causes no error.
	pid, err := strconv.Atoi(f.do(t, "pid"))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	requireGone(t, pid)
	require.Equal(t, "fine", f.do(t, "say fine"))
}

func TestFaultsAtStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode, want string
		permanent  bool
	}{
		{"exit", "exit status 9: cannot load the frobnicator [redacted]", false},
		{"version", "speaks version 7", true},
	} {
		f := open(t, setup{mode: c.mode})
		_, err := f.exec.Execute(t.Context(), f.trial(t, "say x"))
		require.ErrorContains(t, err, c.want)
		require.Equal(t, c.permanent, executor.IsPermanent(err), c.mode)
	}
	for mode, want := range map[string]string{
		"mute":    "did not answer initialize",
		"rubbish": `it printed 2 lines that are not protocol messages, first "Welcome to the agent!"`,
	} {
		inTime(t, []float64{0.5, 5, 60}, want, func(seconds float64) error {
			f := open(t, setup{mode: mode, config: fmt.Sprintf("  first_event_timeout_seconds: %v\n", seconds)})
			_, err := f.exec.Execute(t.Context(), f.trial(t, "say x"))
			return err
		})
	}
}

func TestFaultsInMidTrial(t *testing.T) {
	t.Parallel()
	f := open(t, setup{})
	for prompt, want := range map[string]string{
		"fail -32603 boom":               "session/prompt: boom",
		"stop cancelled":                 "cancelled the turn without a request",
		"fail -32603 key sk-very-secret": "key [redacted]",
	} {
		_, err := f.exec.Execute(t.Context(), f.trial(t, prompt))
		require.ErrorContains(t, err, want)
	}
	require.Equal(t, 1, f.processes(t), "an error answer does not end the process")
	tr := f.trial(t, "print this is no message\nprint {\"jsonrpc\":\"2.0\"}\nprint []\nsay the key is here\nstop max_tokens")
	out, err := f.exec.Execute(t.Context(), tr)
	require.NoError(t, err)
	require.Equal(t, "the key is here", out.Output)
	require.Contains(t, f.do(t, "call terminal/create"), "Method not found")
}

// The output of an agent is bounded, and the run continues after a flood.
func TestFlood(t *testing.T) {
	t.Parallel()
	f := open(t, setup{})
	acp.SetMaxTrial(f.exec, 9<<20)
	tr := f.trial(t, "flood 100")
	_, err := f.exec.Execute(t.Context(), tr)
	require.ErrorContains(t, err, "sent too much in one trial: more than 9 MiB")
	size := 0
	for _, e := range entries(tr) {
		size += len(e.Text)
	}
	require.LessOrEqual(t, size, executor.MaxTranscriptBytes+1000)
	_, err = f.exec.Execute(t.Context(), f.trial(t, "long 9"))
	require.ErrorContains(t, err, "a message of more than 8 MiB")
	out, err := f.exec.Execute(t.Context(), f.trial(t, "long 5"))
	require.NoError(t, err)
	require.Len(t, out.Output, executor.MaxOutputBytes)
	require.EqualValues(t, 1<<20, out.OutputDropped, "graders must see that output was dropped")
	// More small messages than fit into the library's queue.
	require.Len(t, f.do(t, "burst 5000"), 5000)
}

func TestFirstEventTimeout(t *testing.T) {
	t.Parallel()
	var f *fixture
	inTime(t, []float64{1.5, 10, 60}, "no sign of life", func(seconds float64) error {
		f = open(t, setup{config: fmt.Sprintf("  first_event_timeout_seconds: %v\n", seconds)})
		_, err := f.exec.Execute(t.Context(), f.trial(t, "hang"))
		return err
	})
	for n := 1; ; n++ {
		out, err := f.exec.Execute(t.Context(), f.trial(t, "say fine"))
		if errors.Is(err, executor.ErrTimeout) && n < 20 {
			continue // the machine is busy; try again
		}
		require.NoError(t, err)
		require.Equal(t, "fine", out.Output)
		return
	}
}

// inTime calls try with increasing limits until the error contains want. On a busy machine, a
// short limit can expire before the agent reaches that point.
func inTime(t *testing.T, seconds []float64, want string, try func(seconds float64) error) {
	t.Helper()
	for i, s := range seconds {
		err := try(s)
		require.ErrorIs(t, err, executor.ErrTimeout)
		if i == len(seconds)-1 || strings.Contains(err.Error(), want) {
			require.ErrorContains(t, err, want)
			return
		}
	}
}

// A cancelled trial keeps its record, and none of its processes is left.
func TestCancel(t *testing.T) {
	t.Parallel()
	f := open(t, setup{})
	for prompt, said := range map[string]string{"await-cancel": "cancelled in time", "sleeping": ""} {
		if said != "" { // the agent answers, and waza waits for it
			acp.SetGrace(f.exec, 3*time.Minute)
		} else {
			acp.SetGrace(f.exec, 100*time.Millisecond)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("because")
		tr := f.trial(t, "say working\n"+prompt)
		dir, _ := tr.Dir()
		var out executor.Outcome
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			out, err = f.exec.Execute(ctx, tr)
		}()
		require.Eventually(t, func() bool {
			_, err := os.Stat(filepath.Join(dir, "ready"))
			return err == nil
		}, 3*time.Minute, 5*time.Millisecond)
		cancel(cause)
		<-done
		require.ErrorIs(t, err, cause)
		if said != "" {
			require.Equal(t, said, out.Output)
			continue
		}
		pid, err := strconv.Atoi(strings.TrimPrefix(out.Output, "working"))
		require.NoError(t, err, out.Output)
		requireGone(t, pid)
	}
	require.Equal(t, "fine", f.do(t, "say fine"))
}

// An agent that stops at the limit of a turn gets the next prompt in the same session. Another one is ended.
func TestLimitOfTurn(t *testing.T) {
	t.Parallel()
	f := open(t, setup{})
	for prompt, fault := range map[string]string{"await-cancel": "", "sleeping": "limit"} {
		acp.SetGrace(f.exec, 3*time.Minute)
		if fault != "" {
			acp.SetGrace(f.exec, 50*time.Millisecond)
		}
		tr := f.trial(t, prompt, "say next")
		tr.Task.Inputs.Checkpoints = []eval.Checkpoint{{AfterTurn: 1, AgentTimeoutSeconds: 1}}
		outs := []string{}
		tr.After = func(_ context.Context, turn executor.Turn) (string, bool, error) {
			outs = append(outs, turn.Outcome.Output)
			return "say next", turn.Num == 1, nil
		}
		_, err := f.exec.Execute(t.Context(), tr)
		if fault != "" {
			require.Error(t, err)
			require.Len(t, outs, 1)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, []string{"cancelled in time", "next"}, outs)
	}
}

// A tool that left the process group ends with an agent that dies.
func TestDeathLeavesNothing(t *testing.T) {
	t.Parallel()
	f := open(t, setup{})
	out, err := f.exec.Execute(t.Context(), f.trial(t, "orphan"))
	require.ErrorContains(t, err, "during the trial")
	pid, err := strconv.Atoi(out.Output)
	require.NoError(t, err)
	requireGone(t, pid)
}

// requireGone waits until a process has exited or is a zombie.
func requireGone(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		if syscall.Kill(pid, 0) != nil {
			return true
		}
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err == nil && strings.Contains(string(stat), ") Z ")
	}, 3*time.Minute, 5*time.Millisecond, "process %d is still running", pid)
}
