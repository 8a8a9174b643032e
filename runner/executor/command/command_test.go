//go:build unix

package command_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/executor"
	"waza/runner/executor/command"
	"waza/runner/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type fixture struct {
	suite *eval.Suite
	exec  executor.Executor
	logs  *strings.Builder
}

// setup creates a suite with that config and agent.sh next to it.
func setup(t *testing.T, config, agent string) fixture {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "agent.sh"), []byte("#!/bin/sh\n"+agent), 0o755))
	file := filepath.Join(dir, "eval.yaml")
	text := "name: t\nconfig:\n  executor: command\n" + config + "tasks: [{id: a, prompt: x}]\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	suite, ds, err := eval.Load(file, eval.Options{Vocabulary: &eval.Vocabulary{Executors: []eval.Kind{command.Kind.Kind}}})
	require.NoError(t, err)
	require.Empty(t, ds.Errors())
	e, err := command.Kind.Open(t.Context(), settings(suite))
	require.NoError(t, err)
	return fixture{suite: suite, exec: e, logs: &strings.Builder{}}
}

func settings(s *eval.Suite) executor.Settings {
	return executor.Settings{Suite: s, Options: s.ExecutorOptions["command"]}
}

func (f fixture) trial(t *testing.T, prompts ...string) *executor.Trial {
	dir := t.TempDir()
	var mu sync.Mutex
	return &executor.Trial{
		Order: &record.Order{Suite: f.suite, Task: f.suite.Tasks[0], Num: 3, Model: "m-1"}, Attempt: 1,
		Prompt: prompts[0], FollowUps: prompts[1:],
		Dir: func() (string, error) { return dir, nil }, Env: os.Environ(), Transcript: executor.NewTranscript(),
		Logf: func(level, format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(f.logs, level+" "+format+"\n", args...)
		},
	}
}

// The program gets the prompt in each of the ways a suite can choose.
func TestPrompt(t *testing.T) {
	t.Parallel()
	const prompt = "it's \"quoted\" $HOME\nand long"
	for config, agent := range map[string]string{
		"  command: [sh, agent.sh]\n":                                    "cat",
		"  command: [./agent.sh]\n":                                      "cat",
		"  command: ./agent.sh --flag\n":                                 `test "$1" = --flag && cat`,
		"  command: sh agent.sh 'sh agent.sh'\n":                         `test "$1" = "sh agent.sh" && cat`,
		"  command: test ! -e agent.sh && cat\n":                         "", // a name of a file in the workspace
		"  command: [sh, agent.sh]\n  prompt_as: argument\n":             `printf '%s' "$1"`,
		"  command: ./agent.sh --flag\n  prompt_as: argument\n":          `printf '%s' "$2"`,
		"  command: [sh, agent.sh]\n  prompt_as: env\n":                  `printf '%s' "$WAZA_PROMPT"`,
		"  command: \"cat; printf '%s' \\\"$X\\\"\"\n  env: {X: \"\"}\n": "",
	} {
		f := setup(t, config, agent)
		out, err := f.exec.Execute(t.Context(), f.trial(t, prompt))
		require.NoError(t, err, config)
		require.Equal(t, prompt, out.Output, config)
	}
}

func TestSideChannel(t *testing.T) {
	t.Parallel()
	f := setup(t, "  command: [sh, agent.sh]\n", `
prompt=$(cat)
echo '{"type":"tool_call","name":"bash","arguments":{"command":"ls"},"result":"a.txt","duration_ms":5}' >&3
echo '{"type":"skill","name":"explainer"}' >&3
echo 'rubbish' >&3
echo '{"type":"dance"}' >&3
echo '{"type":"usage","input_tokens":10,"output_tokens":5}' >&3
echo '{"type":"usage","input_tokens":1,"output_tokens":1,"cost_usd":0.5}' >&3
printf '{"type":"message","text":"no newline"}' >&3
echo "answer $WAZA_TURN to $prompt in $(basename "$PWD") by $WAZA_MODEL, trial $WAZA_TRIAL"
`)
	tr := f.trial(t, "one", "two")
	out, err := f.exec.Execute(t.Context(), tr)
	require.NoError(t, err)
	dir, _ := tr.Dir()
	require.Equal(t, "answer 2 to two in "+filepath.Base(dir)+" by m-1, trial 3", out.Output)
	require.Equal(t, &record.Usage{InputTokens: 22, OutputTokens: 12, CostUSD: 1}, out.Usage)
	var kinds []string
	for _, e := range tr.Transcript.Close() {
		kinds = append(kinds, string(e.Type))
	}
	turn := "message tool_call skill message message"
	require.Equal(t, turn+" "+turn, strings.Join(kinds, " "))
	require.Contains(t, f.logs.String(), "warning file descriptor 3: not a JSON event")
}

func TestFaults(t *testing.T) {
	t.Parallel()
	f := setup(t, "  command: [sh, agent.sh]\n", "echo so far; echo it broke >&2; exit 3")
	out, err := f.exec.Execute(t.Context(), f.trial(t, "x"))
	require.EqualError(t, err, "sh: exit status 3: it broke")
	require.Equal(t, "so far", out.Output)

	f = setup(t, "  command: [no-such-agent-here]\n", "")
	_, err = f.exec.Execute(t.Context(), f.trial(t, "x"))
	require.ErrorContains(t, err, "no-such-agent-here: not found on PATH")
	require.True(t, executor.IsPermanent(err))
	findings := command.Kind.Preflight(t.Context(), settings(f.suite))
	require.Len(t, findings, 1)
	require.Equal(t, decode.Warning, findings[0].Severity)

	f = setup(t, "  command: [sh, agent.sh]\n", "")
	require.Empty(t, command.Kind.Preflight(t.Context(), settings(f.suite)))
}

// Once, a path without a program was found only when trials failed, because every name with a
// slash counted as a program.
func TestMissingAbsoluteProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600))
	for config, want := range map[string]string{
		"[/no/such/agent, --fast]":          "config.command: /no/such/agent: no such program; every trial will end in error",
		"/no/such/agent --fast":             "/no/such/agent: no such program",
		"[" + dir + "]":                     dir + " is a directory, not a program",
		"[" + plain + "]":                   plain + " is not executable: chmod +x it",
		"[/bin/sh, agent.sh]":               "",
		"/bin/sh agent.sh":                  "",
		"\"/no/such/$AGENT --fast\"":        "", // left to the shell
		"test -x /no/such/agent || exit":    "",
		"\"[ -x /no/such/agent ] || exit\"": "",
	} {
		f := setup(t, "  command: "+config+"\n", "true")
		findings := command.Kind.Preflight(t.Context(), settings(f.suite))
		if want == "" {
			require.Empty(t, findings, config)
			continue
		}
		require.Len(t, findings, 1, config)
		require.Equal(t, decode.CodeUnavailable, findings[0].Code)
		require.Contains(t, findings[0].Message, want)
	}
}

// Once, a missing script was found only when trials failed.
func TestMissingScript(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		"  command: [sh, gone.sh]\n":                                         "config.command: no such file: gone.sh (tried ",
		"  command: [sh, -x, sub/gone.sh]\n":                                 "no such file: sub/gone.sh",
		"  command: [sh, /no/such/gone.sh]\n":                                "no such file: /no/such/gone.sh (tried /no/such/gone.sh)",
		"  command: [sh, agent.sh, data.py]\n":                               "",
		"  command: [sh, -c, gone.sh]\n":                                     "",
		"  command: [sh, gone]\n":                                            "", // not clearly a script
		"  command: [cat, gone.sh]\n":                                        "", // not an interpreter
		"  command: [sh, '{{name}}.sh']\n":                                   "",
		"  command: sh gone.sh\n":                                            "", // left to the shell
		"  command: [sh, gone.sh]\nhooks: {before_run: [{command: make}]}\n": "",
		"  command: [sh, ./given.sh]\ninputs: {}\n":                          "",
	} {
		f := setup(t, config, "true")
		if strings.Contains(config, "given") {
			f.suite.Tasks[0].Inputs.Files = []eval.InputFile{{Path: "given.sh"}}
		}
		findings := command.Kind.Preflight(t.Context(), settings(f.suite))
		if want == "" {
			require.Empty(t, findings, config)
			continue
		}
		require.Len(t, findings, 1, config)
		require.Equal(t, decode.CodeMissingFile, findings[0].Code)
		require.Equal(t, decode.Warning, findings[0].Severity)
		require.Contains(t, findings[0].Message, want)
	}
}

// The output of an agent takes bounded memory, and the trial continues after a flood.
func TestFlood(t *testing.T) {
	t.Parallel()
	f := setup(t, "  command: [sh, agent.sh]\n", `
head -c 6000000 /dev/zero | tr '\0' 'x'
(head -c 3000000 /dev/zero | tr '\0' 'y'; echo; echo '{"type":"skill","name":"after"}') >&3`)
	tr := f.trial(t, "x")
	out, err := f.exec.Execute(t.Context(), tr)
	require.NoError(t, err)
	require.Len(t, out.Output, executor.MaxOutputBytes)
	require.EqualValues(t, 6_000_000-executor.MaxOutputBytes, out.OutputDropped)
	require.Contains(t, f.logs.String(), "line is longer than 1024 KiB")
	entries := tr.Transcript.Close()
	require.Equal(t, record.EntrySkill, entries[1].Type)
}

func TestFirstEventTimeout(t *testing.T) {
	t.Parallel()
	trial := func(seconds float64, agent string) (string, error) {
		f := setup(t, fmt.Sprintf("  command: [sh, agent.sh]\n  first_event_timeout_seconds: %v\n", seconds), agent)
		out, err := f.exec.Execute(t.Context(), f.trial(t, "x"))
		return out.Output, err
	}
	_, err := trial(0.1, "sleep 1000")
	require.ErrorIs(t, err, executor.ErrTimeout)
	for _, sign := range []string{`echo here`, `echo '{"type":"skill","name":"s"}' >&3`} {
		for _, seconds := range []float64{0.3, 3, 30} { // a busy machine can take too long to start it
			output, err := trial(seconds, fmt.Sprintf("%s; sleep %v; echo done", sign, 2*seconds))
			if errors.Is(err, executor.ErrTimeout) && seconds < 30 {
				continue
			}
			require.NoError(t, err)
			require.Contains(t, output, "done")
			break
		}
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	f := setup(t, "  command: [sh, agent.sh]\n", "sleep 1000")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.exec.Execute(ctx, f.trial(t, "x"))
	require.ErrorIs(t, err, context.Canceled)
}

// Harmful lines are skipped or repaired: deeply nested arguments that JSON parsers reject,
// invalid UTF-8, too many log lines, and negative counts.
func TestHostileSideChannel(t *testing.T) {
	t.Parallel()
	agent := func(line string) fixture { return setup(t, "  command: [sh, agent.sh]\n", "(\n"+line+"\n) >&3") }
	nested := strings.Repeat("[", 600) + strings.Repeat("]", 600)
	for line, warning := range map[string]string{
		`echo '{"type":"tool_call","name":"x","arguments":` + nested + `}'`: "nested more than 500 levels deep",
		`echo '{"type":"usage","input_tokens":-1}'`:                         "must not be negative",
	} {
		f := agent(line)
		tr := f.trial(t, "x")
		out, err := f.exec.Execute(t.Context(), tr)
		require.NoError(t, err)
		require.Nil(t, out.Usage)
		require.Len(t, tr.Transcript.Close(), 1)
		require.Contains(t, f.logs.String(), warning)
	}

	// Metadata that cannot be recorded was only a warning, so that graders decided as if there were no metadata.
	for line, fault := range map[string]string{
		`echo '{"type":"metadata","metadata":[1]}'`:                                                        "metadata must be an object",
		`echo '{"type": "metadata", "metadata": {"score": NaN}}'`:                                          "not a JSON event: invalid character 'N'",
		`echo '{"metadata": {"k": ` + nested + `}, "type": "metadata"}'`:                                   "line is nested more than 500 levels deep",
		`printf '{"type":"metadata","metadata":{"k":"'; head -c 1100000 /dev/zero | tr '\0' x; echo '"}}'`: "line is longer than 1024 KiB",
	} {
		_, err := agent(line).exec.Execute(t.Context(), agent(line).trial(t, "x"))
		require.ErrorContains(t, err, "the program reported metadata that cannot be recorded: "+fault)
	}

	f := agent(`printf '{"type":"tool_call","name":"x","arguments":["\377","\\"[[["]}\n'`)
	tr := f.trial(t, "x")
	_, err := f.exec.Execute(t.Context(), tr)
	require.NoError(t, err)
	require.Equal(t, "[\"\uFFFD\",\"\\\"[[[\"]", string(tr.Transcript.Close()[1].Tool.Arguments))

	// Once, a byte order mark at the start of the stream invalidated the first event.
	f = agent(`printf '\357\273\277{"type":"skill","name":"explainer"}\n'`)
	tr = f.trial(t, "x")
	_, err = f.exec.Execute(t.Context(), tr)
	require.NoError(t, err)
	require.Equal(t, "explainer", tr.Transcript.Close()[1].Text)

	f = agent(`i=0; while [ $i -lt 1500 ]; do echo '{"type":"log","text":"again"}'; i=$((i+1)); done`)
	_, err = f.exec.Execute(t.Context(), f.trial(t, "x"))
	require.NoError(t, err)
	require.Equal(t, 1000, strings.Count(f.logs.String(), "again"))
	require.Contains(t, f.logs.String(), "more than 1000 log lines")
}

// Once, a program that could not be started temporarily counted as one that can never be
// started, and the trial was not retried.
func TestStartFaultThatPasses(t *testing.T) {
	t.Parallel()
	f := setup(t, "  command: [./agent.sh]\n", "echo done")
	held, err := os.OpenFile(filepath.Join(f.suite.Dir, "agent.sh"), os.O_WRONLY, 0)
	require.NoError(t, err)
	defer held.Close()
	_, err = f.exec.Execute(t.Context(), f.trial(t, "x"))
	if err == nil {
		t.Skip("this system starts programs that are open for writing")
	}
	require.ErrorContains(t, err, "text file busy")
	require.False(t, executor.IsPermanent(err))
}
