//go:build unix

package acp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner"
	"waza/runner/executor"
	"waza/runner/executor/acp"
	"waza/runner/record"
	"waza/runner/record/recordtest"
)

// ran is a finished run of a suite.
type ran struct {
	*recordtest.Result
	events []*record.Event
	starts string // file with a line for each start of the agent
	state  string // directory with all records
}

// verdicts returns the verdicts of all trials, by task.
func (r *ran) verdicts() map[string][]record.Verdict {
	all := map[string][]record.Verdict{}
	for _, task := range r.Tasks {
		for _, trial := range task.Trials {
			all[task.ID] = append(all[task.ID], trial.Verdict)
		}
	}
	return all
}

// kind returns the executor for the agent that s sets up.
func (s setup) kind() executor.Kind {
	kind := acp.Kind
	kind.Open = func(ctx context.Context, settings executor.Settings) (executor.Executor, error) {
		e, err := acp.Kind.Open(ctx, settings)
		if err == nil && s.maxTrial > 0 {
			acp.SetMaxTrial(e, s.maxTrial)
		}
		if err == nil && s.grace > 0 {
			acp.SetGrace(e, s.grace)
		}
		return e, err
	}
	return kind
}

// run runs a suite of the fake agent. tasks is the text after its config.
func run(t testing.TB, s setup, tasks string) *ran {
	t.Helper()
	dir := t.TempDir()
	res := &ran{starts: filepath.Join(dir, "starts"), state: t.TempDir()}
	r, err := runner.New(runner.Options{StateDir: res.state, Executors: executor.NewRegistry(s.kind()), Sandboxes: s.sandboxes})
	require.NoError(t, err)
	file := filepath.Join(dir, "eval.yaml")
	require.NoError(t, os.WriteFile(file, []byte("name: t\nconfig:\n"+s.lines(t, dir)+tasks), 0o600))
	suite, ds, err := eval.Load(file, eval.Options{Vocabulary: r.Planner().Vocabulary()})
	require.NoError(t, err)
	require.Empty(t, ds.Errors())
	plan, err := r.Planner().Plan(t.Context(), suite, record.Request{})
	require.NoError(t, err)
	live, err := r.Start(plan)
	require.NoError(t, err)
	t.Cleanup(func() {
		live.Cancel()
		<-live.Done()
	})
	for sub := live.Subscribe(1); ; {
		batch, err := sub.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		res.events = append(res.events, batch...)
	}
	<-live.Done()
	var b bytes.Buffer
	require.NoError(t, live.WriteResult(&b))
	res.Result = recordtest.Decode(t, b.Bytes())
	return res
}

// If no user is logged in, all workers fail at once, and the run reports it once.
func TestRunStopsWhenLoggedOut(t *testing.T) {
	t.Parallel()
	res := run(t, setup{mode: "auth", config: "  sandbox: off\n  trials_per_task: 50\n  parallel: true\n  workers: 4\n  retry_errors: 3\n"},
		"tasks: [{id: a, prompt: say x}]\n")
	require.Equal(t, record.StatusFailed, res.Status)
	require.Contains(t, res.Error, "the agent is not logged in: Authentication required")
	require.LessOrEqual(t, res.Summary.Trials.Errors, 4)
	require.Zero(t, res.Summary.Trials.Failed)
	require.LessOrEqual(t, starts(t, res.starts), 4)
	reports := 0
	for _, e := range res.events {
		if e.Type == record.Log && e.Level == "error" && e.Verdict == "" { // errors of trials have a verdict
			reports++
		}
	}
	require.Equal(t, 1, reports)
}

// A missing agent is not a failure of the agent, and its trials are not retried.
func TestRunWithoutAgent(t *testing.T) {
	t.Parallel()
	res := run(t, setup{config: "  agent: {command: no-such-agent-here, install: get it}\n  retry_errors: 3\n"},
		"tasks: [{id: a, prompt: say x}]\n")
	require.Equal(t, record.StatusCompleted, res.Status)
	trial := res.Trial(t, "a", 1)
	require.Equal(t, record.Errored, trial.Verdict)
	require.Empty(t, trial.Attempts)
	require.Contains(t, trial.Error, "no-such-agent-here is not installed; install it: get it")
}

// The run continues with the next trial regardless of what an agent does in one.
func TestRunGoesOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first   string // of the task that fails
		verdict record.Verdict
		says    string
	}{
		"version": {"inputs: {prompt: say x, environment: {FAKE_MODE: version}}", record.Errored, "speaks version 7"},
		"ends at once": {
			"inputs: {prompt: say x, environment: {FAKE_MODE: exit}}", record.Errored,
			"exit status 9: cannot load the frobnicator",
		},
		"rubbish": {
			"inputs: {prompt: say x, environment: {FAKE_MODE: rubbish}}", record.TimedOut,
			"it printed 2 lines that are not protocol messages",
		},
		"says no hello":   {"inputs: {prompt: say x, environment: {FAKE_MODE: mute}}", record.TimedOut, "did not answer initialize within"},
		"never answers":   {"prompt: hang", record.TimedOut, "no sign of life within"},
		"falls silent":    {"prompt: \"say so far\\nhang\", timeout_seconds: 2", record.TimedOut, "timeout exceeded"},
		"dies":            {"prompt: \"say so far\\ndie 3\"", record.Errored, "during the trial: exit status 3"},
		"closes its pipe": {"prompt: close-output", record.TimedOut, "no sign of life within"},
		"floods":          {"prompt: flood 100", record.Errored, "sent too much in one trial: more than 2 MiB"},
		"a huge message":  {"prompt: long 9", record.Errored, "a message of more than 8 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup{}
			if name == "floods" {
				s.maxTrial = 2 << 20
			}
			want := map[string][]record.Verdict{"bad": {c.verdict}, "good": {record.Passed}}
			var res *ran
			for _, seconds := range []int{4, 20, 90} { // a busy machine can take too long to start an agent
				if c.verdict == record.TimedOut && name != "falls silent" {
					s.config = fmt.Sprintf("  first_event_timeout_seconds: %d\n", seconds)
				}
				res = run(t, s,
					"tasks:\n  - {id: bad, "+c.first+"}\n  - {id: good, prompt: say fine}\ngraders: [{name: g, type: text, config: {contains: [fine]}}]\n")
				if maps.EqualFunc(want, res.verdicts(), slices.Equal) && strings.Contains(res.Trial(t, "bad", 1).Error, c.says) {
					break
				}
			}
			require.Equal(t, want, res.verdicts())
			require.Contains(t, res.Trial(t, "bad", 1).Error, c.says)
			require.Equal(t, record.StatusCompleted, res.Status)
		})
	}
}

// An agent that dies is replaced, and its trial is retried like other trials in error.
func TestRunReplacesAgent(t *testing.T) {
	t.Parallel()
	res := run(t, setup{config: "  sandbox: off\n  retry_errors: 1\n"},
		"tasks:\n  - {id: a, prompt: say fine}\n  - {id: b, prompt: \"say so far\\ndie-once\\nsay fine\"}\n  - {id: c, prompt: say fine}\n")
	require.Equal(t, map[string][]record.Verdict{"a": {record.Passed}, "b": {record.Passed}, "c": {record.Passed}}, res.verdicts())
	attempts := res.Trial(t, "b", 1).Attempts
	require.Len(t, attempts, 1)
	require.Equal(t, record.Errored, attempts[0].Verdict)
	require.Contains(t, attempts[0].Error, "the agent ended during the trial: exit status 1")
	require.Equal(t, "so far", attempts[0].Output)
	require.Equal(t, 2, starts(t, res.starts))
}

// Once, agents that started at the same time in a fresh home locked each other out of its
// database. The first agent must finish its setup before others start.
func TestFirstAgentStartsAlone(t *testing.T) {
	t.Parallel()
	res := run(t, setup{mode: "alone", config: "  sandbox: off\n  trials_per_task: 8\n  parallel: true\n  workers: 4\n  retry_errors: 0\n"},
		"tasks: [{id: a, prompt: say x}]\n")
	require.Equal(t, 8, res.Summary.Trials.Passed)
	require.LessOrEqual(t, starts(t, res.starts), 4)
}

// If the first agent fails, the others still start.
func TestFirstAgentFails(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"exit", "version"} {
		res := run(t, setup{mode: mode, config: "  trials_per_task: 6\n  parallel: true\n  workers: 3\n  retry_errors: 0\n"},
			"tasks: [{id: a, prompt: say x}]\n")
		require.Equal(t, record.StatusCompleted, res.Status)
		require.Equal(t, 6, res.Summary.Trials.Errors, mode)
	}
}

// Once, the start of an agent counted towards the duration of the first trial, and only of that
// one.
func TestStartIsNoPartOfTrial(t *testing.T) {
	t.Parallel()
	res := run(t, setup{mode: "slow"}, "tasks:\n  - {id: a, prompt: \"work 50\"}\n  - {id: b, prompt: \"work 50\"}\n")
	first, second := res.Trial(t, "a", 1), res.Trial(t, "b", 1)
	require.GreaterOrEqual(t, first.StartupMS, slowStart.Milliseconds())
	for _, trial := range []*record.Trial{first, second} {
		require.Equal(t, record.Passed, trial.Verdict)
		require.GreaterOrEqual(t, trial.ExecutorMS, int64(50))
		require.GreaterOrEqual(t, trial.DurationMS, trial.StartupMS+trial.ExecutorMS)
	}
}

// The start of an agent is paid once per worker, however many trials there are.
func TestRunStartsOneAgentPerWorker(t *testing.T) {
	t.Parallel()
	res := run(t, setup{config: "  sandbox: off\n  trials_per_task: 25\n  parallel: true\n  workers: 3\n"}, `tasks:
  - {id: a, prompt: "say fine\npid"}
  - {id: b, prompt: "say fine\npid"}
graders: [{name: g, type: text, config: {contains: [fine]}}]
`)
	require.Equal(t, 50, res.Summary.Trials.Passed)
	require.LessOrEqual(t, starts(t, res.starts), 3)
}

// The agent prints its key in every possible way. No file and no event of the run contains it,
// and graders see the real output.
func TestNoKeyLeftBehind(t *testing.T) {
	t.Parallel()
	k := secretKey
	talk := strings.Join([]string{
		"think " + k, "stderr " + k, "print " + k,
		`tool {"toolCallId":"1","title":"cat ` + k + `","kind":"execute","status":"completed","rawInput":{"command":"` + k +
			`"},"rawOutput":{"out":"{\"key\":\"` + k + `\"}"}}`,
		`tool {"toolCallId":"2","title":"x","status":"completed","content":[{"type":"content","content":{"type":"text","text":"` + k + `"}}]}`,
		`ask {"toolCallId":"3","title":"` + k + `","kind":"execute","rawInput":{"command":"` + k + `"}}`,
		`update {"sessionUpdate":"plan","entries":[{"content":"` + k + `"}]}`,
		"read ../" + k, "say the env has", "env FAKE_API_KEY",
	}, "\n")
	indent := func(text string) string { return "      " + strings.ReplaceAll(text, "\n", "\n      ") + "\n" }
	res := run(t, setup{
		config: "  mcp_servers:\n    a: {command: x, env: {A_TOKEN: tok-0123456789}}\n",
	}, "graders: [{name: g, type: text, config: {contains: ["+k+"]}}]\ntasks:\n"+
		"  - id: talks\n    prompt: |\n"+indent(talk)+
		"  - id: refuses\n    prompt: fail -32603 no use for "+k+"\n"+
		"  - id: dies\n    prompt: |\n"+indent("stderr "+k+"\ndie 1")+
		"  - {id: starts, inputs: {prompt: say x, environment: {FAKE_MODE: exit}}}\n")
	require.Equal(t, map[string][]record.Verdict{
		"talks": {record.Passed}, "refuses": {record.Errored}, "dies": {record.Errored}, "starts": {record.Errored},
	}, res.verdicts())
	files := 0
	require.NoError(t, filepath.WalkDir(res.state, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		require.NotContains(t, string(data), k, path)
		require.NotContains(t, string(data), "tok-0123456789", path)
		return err
	}))
	require.GreaterOrEqual(t, files, 3)
	for _, e := range res.events {
		b, err := json.Marshal(e)
		require.NoError(t, err)
		require.NotContains(t, string(b), k)
	}
	require.Contains(t, res.Trial(t, "talks", 1).Output, "[redacted]")
}

// An agent ends before waza puts files for graders into its workspace, instead of waiting for another trial.
func TestFinalFilesEndAgent(t *testing.T) {
	t.Parallel()
	const tasks = `
tasks:
  - id: a
    inputs: {prompt: say x, follow_up_prompts: [say y]}
    checkpoints: [{after_turn: %d, files: [{path: last, content: x}]}]
    graders: [{type: file, config: {must_exist: [last]}}]
`
	for turn, processes := range map[int]int{1: 1, 2: 2} {
		res := run(t, setup{config: "  sandbox: off\n  trials_per_task: 2\n"}, fmt.Sprintf(tasks, turn))
		require.Equal(t, map[string][]record.Verdict{"a": {record.Passed, record.Passed}}, res.verdicts())
		require.Equal(t, processes, starts(t, res.starts))
	}
}

// The commands of a checkpoint run while an agent lives. So that it cannot pass its files off as theirs, all of them
// count as its own.
func TestWrittenWhileAgentLives(t *testing.T) {
	t.Parallel()
	res := run(t, setup{config: "  sandbox: off\n"}, `
tasks:
  - id: a
    inputs: {prompt: say x, follow_up_prompts: [say y]}
    checkpoints: [{after_turn: 1, setup: [touch between]}, {after_turn: 2, setup: [touch last]}]
    graders: [{type: file, config: {created: true, must_exist: [between], must_not_exist: [last]}}]
`)
	require.Equal(t, map[string][]record.Verdict{"a": {record.Passed}}, res.verdicts())
}

// An agent that does not stop at the limit of a turn is killed. The graders of the turn score its work, and the trial fails if
// a prompt follows.
func TestPromptAfterLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prompt, followUps string
		verdict           record.Verdict
	}{
		"stops":       {"say x\nawait-cancel", "[say y]", record.Passed},
		"ignores":     {"say x\nhang", "[say y]", record.Failed},
		"dies":        {"say x\nawait-cancel\ndie 3", "[say y]", record.Failed},
		"last prompt": {"say x\nhang", "[]", record.Passed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prompt, err := json.Marshal(c.prompt)
			require.NoError(t, err)
			res := run(t, setup{grace: 50 * time.Millisecond, config: "  sandbox: off\n  retry_errors: 1\n"}, `
tasks:
  - id: a
    inputs: {prompt: `+string(prompt)+`, follow_up_prompts: `+c.followUps+`}
    checkpoints: [{after_turn: 1, agent_timeout_seconds: 0.5, graders: [{type: tool_calls, config: {max_calls: 9}}]}]
    graders: [{type: tool_calls, config: {max_calls: 9}}]
`)
			trial := res.Trial(t, "a", 1)
			require.Equal(t, c.verdict, trial.Verdict, trial.Error)
			require.Empty(t, trial.Attempts)
			require.Len(t, trial.Checkpoints, 1)
			if c.verdict == record.Failed {
				require.Contains(t, trial.Error, "waza had to kill it; it did not stop when it was asked to: the agent was ended after 500ms, its agent_timeout_seconds of turn 1")
			}
		})
	}
}

// An agent whose trigger test is decided is asked to stop, and reused if it does. Otherwise it is killed, like at a
// time limit. Its tokens are known if its last answer says so.
func TestEarlyEnd(t *testing.T) {
	t.Parallel()
	skill := t.TempDir() + "/greet"
	require.NoError(t, os.Mkdir(skill, 0o700))
	require.NoError(t, os.WriteFile(skill+"/SKILL.md", []byte("---\nname: greet\ndescription: d\n---\nGreet."), 0o600))
	use := `tool {"toolCallId":"1","kind":"read","title":"Read","status":"completed","locations":[{"path":".agents/skills/greet/SKILL.md"}]}`
	other := `tool {"toolCallId":"2","kind":"execute","title":"ls","status":"completed"}`
	for name, c := range map[string]struct {
		keys, prompt string
		verdict      record.Verdict
		starts       int
		usage        *record.Usage
	}{
		"stops":       {"", use + "\nusage 10 5\nawait-cancel", record.Passed, 1, &record.Usage{InputTokens: 10, OutputTokens: 5, TotalTokens: 15}},
		"says little": {"", use + "\nawait-cancel", record.Passed, 1, nil},
		"hangs":       {"", use + "\nusage 10 5\nhang", record.Passed, 2, nil},
		"fails":       {"", use + "\nawait-cancel\nfail -32603 cancelled", record.Passed, 2, nil},
		"first tool":  {"first_tool: true, ", other + "\nawait-cancel", record.Failed, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prompt, err := json.Marshal(c.prompt)
			require.NoError(t, err)
			res := run(t, setup{grace: 50 * time.Millisecond, config: "  sandbox: off\n  trials_per_task: 2\n  skill_directories: ['" + filepath.Dir(skill) + "']\n"},
				"skill: greet\ntrigger_tests: {"+c.keys+"should_trigger_prompts: ["+string(prompt)+"]}\n")
			require.Equal(t, map[string][]record.Verdict{"should_trigger#1": {c.verdict, c.verdict}}, res.verdicts())
			for _, trial := range res.Tasks[0].Trials {
				require.True(t, trial.EndedEarly)
				require.Equal(t, c.usage, trial.Usage)
				for _, e := range trial.Transcript {
					require.NotEqual(t, record.EntryError, e.Type, e.Text)
				}
			}
			require.Equal(t, c.starts, starts(t, res.starts))
		})
	}
}
