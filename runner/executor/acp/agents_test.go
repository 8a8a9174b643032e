//go:build agents && linux

package acp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/executor/acp"
	"waza/runner/grader"
)

// TestAgents drives real agents, which a mock model server answers: no network,
// no account. `make test-agents` installs them and says where they are in
// WAZA_AGENTS. What is not installed is skipped, and says so.
func TestAgents(t *testing.T) {
	dir := os.Getenv("WAZA_AGENTS")
	if dir == "" {
		t.Skip("skipped: WAZA_AGENTS names no directory with agents; run make test-agents")
	}
	bin := filepath.Join(dir, "node_modules", ".bin")
	if _, err := os.Stat(filepath.Join(bin, "llmock")); err != nil {
		t.Skip("skipped: the mock model server (npm @copilotkit/aimock) is not installed")
	}
	for _, a := range []realAgent{
		{name: "opencode", package_: "opencode-ai", setUp: setUpOpencode, outside: `{"name":"write","arguments":"{\"filePath\":\"OUTSIDE\",\"content\":\"x\"}"}`},
		{name: "copilot", package_: "@github/copilot", setUp: setUpCopilot, outside: `{"name":"view","arguments":"{\"path\":\"OUTSIDE\"}"}`},
	} {
		t.Run(a.name, func(t *testing.T) {
			a.bin = bin
			if out, err := exec.Command(filepath.Join(bin, a.name), "--version").CombinedOutput(); err != nil {
				t.Skipf("skipped: npm %s is not installed, or does not run here: %v %s", a.package_, err, out)
			}
			a.run(t)
		})
	}
}

type realAgent struct {
	name, package_, bin string
	setUp               func(t *testing.T, home, url string) map[string]string
	outside             string // a tool call that touches the file OUTSIDE
	env                 map[string]string
	home                string
}

func setUpOpencode(t *testing.T, home, url string) map[string]string {
	model := map[string]any{"gpt-4": map[string]any{}, "gpt-5": map[string]any{}}
	config, err := json.Marshal(map[string]any{
		"autoupdate": false, "share": "disabled", "model": "local/gpt-4", "small_model": "local/gpt-4",
		"provider": map[string]any{"local": map[string]any{
			"npm": "@ai-sdk/openai-compatible", "models": model, "options": map[string]any{"baseURL": url, "apiKey": "sk-agents-test-key"},
		}},
	})
	require.NoError(t, err)
	return map[string]string{"OPENCODE_CONFIG_CONTENT": string(config), "OPENCODE_DISABLE_MODELS_FETCH": "true", "OPENCODE_DISABLE_LSP_DOWNLOAD": "true"}
}

func setUpCopilot(_ *testing.T, home, url string) map[string]string {
	return map[string]string{
		"COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": url, "COPILOT_PROVIDER_API_KEY": "sk-agents-test-key",
		"COPILOT_MODEL": "gpt-4", "COPILOT_HOME": filepath.Join(home, "copilot"), "COPILOT_AUTO_UPDATE": "false",
	}
}

// fixtures are what the model says. A prompt that holds the match gets the
// call, and the text once the call has a result.
func fixtures(outside string) string {
	bash := func(command string) string {
		arguments, _ := json.Marshal(map[string]string{"command": command, "description": "work"})
		call, _ := json.Marshal(map[string]string{"name": "bash", "arguments": string(arguments)})
		return string(call)
	}
	var all []string
	say := func(match, more, response string) {
		all = append(all, fmt.Sprintf(`{"match":{"userMessage":%q%s},"response":%s}`, match, more, response))
	}
	step := func(match, call, text string) {
		say(match, `,"hasToolResult":false`, `{"toolCalls":[`+call+`]}`)
		say(match, "", fmt.Sprintf(`{"content":%q}`, text))
	}
	say("Title this", "", `{"content":"A title"}`)
	say("write a haiku", "", `{"content":"An old silent pond"}`)
	say("and another", "", `{"content":"A frog leaps in"}`)
	step("create hello", bash("echo hi > hello.txt"), "Created")
	step("create refused", bash("echo hi > refused.txt"), "Could not")
	step("touch outside", outside, "Tried")
	step("long work", bash("touch ready; sleep 300"), "Done")
	say("Say hello warmly", "", `{"content":"Hello, dear"}`) // the skill's body, which Copilot sends as a message
	step("use the greeter", `{"name":"skill","arguments":"{\"name\":\"greeter\",\"skill\":\"greeter\"}"}`, "Hello, dear")
	for i := range 3 {
		all = append(all, fmt.Sprintf(`{"match":{"userMessage":"short storm","sequenceIndex":%d},"response":{"error":{"message":"Rate limited","type":"rate_limit_error"},"status":429}}`, i))
	}
	say("short storm", "", `{"content":"After the storm"}`)
	say("endless storm", "", `{"error":{"message":"Rate limited","type":"rate_limit_error"},"status":429}`)
	return `{"fixtures":[` + strings.Join(all, ",\n") + `]}`
}

// model starts the mock model server and returns its address.
func (a *realAgent) model(t *testing.T, outside string) string {
	file := filepath.Join(t.TempDir(), "fixtures.json")
	require.NoError(t, os.WriteFile(file, []byte(fixtures(strings.ReplaceAll(a.outside, "OUTSIDE", outside))), 0o600))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := free.Addr().String()
	require.NoError(t, free.Close())
	_, port, _ := net.SplitHostPort(addr)
	var log bytes.Buffer
	cmd := exec.Command(filepath.Join(a.bin, "llmock"), "-p", port, "-f", file)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
		if t.Failed() {
			t.Logf("mock model server:\n%s", log.String())
		}
	})
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	}, 30*time.Second, 20*time.Millisecond, "the mock model server does not start")
	return "http://" + addr + "/v1"
}

// open opens an executor for the agent under a policy.
func (a *realAgent) open(t *testing.T, policy string) *fixture {
	t.Helper()
	env, err := json.Marshal(a.env)
	require.NoError(t, err)
	suite := load(t, t.TempDir(), fmt.Sprintf("  executor: acp\n  agent: {preset: %s, env: %s}\n  permissions: %s\n", a.name, env, policy))
	e, err := acp.Kind.Open(t.Context(), executor.Settings{Suite: suite, Options: suite.ExecutorOptions["acp"], Workers: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return &fixture{suite: suite, exec: e}
}

func (a *realAgent) trial(t *testing.T, f *fixture, prompts ...string) (*executor.Trial, string) {
	tr := f.trial(t, prompts...)
	tr.Env = append(tr.Env, "PATH="+a.bin+":"+os.Getenv("PATH"), "HOME="+a.home)
	dir, err := tr.Dir()
	require.NoError(t, err)
	return tr, dir
}

func (a *realAgent) run(t *testing.T) {
	a.home = t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside.txt")
	a.env = a.setUp(t, a.home, a.model(t, outside))
	mark := fmt.Sprintf("WAZA_TEST_AGENT_%d", time.Now().UnixNano())
	a.env[mark] = "1"
	shared := a.open(t, "workspace")
	do := func(t *testing.T, f *fixture, prompts ...string) (*executor.Trial, string, executor.Outcome) {
		t.Helper()
		tr, dir := a.trial(t, f, prompts...)
		out, err := f.exec.Execute(t.Context(), tr)
		require.NoError(t, err)
		return tr, dir, out
	}

	t.Run("plain reply and follow-up", func(t *testing.T) {
		_, _, out := do(t, shared, "please write a haiku", "and another, please")
		require.Equal(t, "A frog leaps in", out.Output)
		require.NotNil(t, out.Usage)
		require.Positive(t, out.Usage.OutputTokens)
	})
	t.Run("tool call that creates a file", func(t *testing.T) {
		tr, dir, out := do(t, shared, "create hello now")
		require.Equal(t, "Created", out.Output)
		require.Equal(t, 1.0, gradeFile(t, dir, "hello.txt"))
		require.Equal(t, 0.0, gradeFile(t, dir, "missing.txt"))
		calls := toolCalls(tr)
		require.Len(t, calls, 1)
		require.Equal(t, "bash", calls[0].Name)
		require.Equal(t, "execute", calls[0].Kind)
		require.Equal(t, "completed", calls[0].Status)
		require.Contains(t, string(calls[0].Arguments), "hello.txt")
	})
	t.Run("skill", func(t *testing.T) { a.skill(t, shared) })
	t.Run("refused permission", func(t *testing.T) {
		tr, dir, _ := do(t, a.open(t, "deny"), "create refused now")
		require.NoFileExists(t, filepath.Join(dir, "refused.txt"))
		requireRefused(t, tr)
	})
	t.Run("refused outside the workspace", func(t *testing.T) {
		require.NoError(t, os.RemoveAll(outside))
		if a.name == "copilot" {
			require.NoError(t, os.WriteFile(outside, []byte("private"), 0o600))
		}
		tr, _, _ := do(t, shared, "touch outside now")
		if a.name != "copilot" {
			require.NoFileExists(t, outside)
		}
		requireRefused(t, tr)
	})
	t.Run("429 storm that passes", func(t *testing.T) {
		_, _, out := do(t, shared, "short storm")
		require.Equal(t, "After the storm", out.Output)
	})
	t.Run("429 storm without end", func(t *testing.T) {
		tr, _ := a.trial(t, shared, "endless storm")
		_, err := shared.exec.Execute(t.Context(), tr)
		require.ErrorContains(t, err, "Rate limited")
		require.False(t, executor.IsPermanent(err))
	})
	t.Run("agent killed in mid-trial", func(t *testing.T) {
		err := a.interrupt(t, shared, func(context.CancelCauseFunc) {
			for _, pid := range children(mark) {
				require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			}
		})
		require.ErrorContains(t, err, "in mid-trial")
		require.False(t, executor.IsPermanent(err))
		do(t, shared, "please write a haiku")
	})
	t.Run("cancel in mid-tool", func(t *testing.T) {
		because := errors.New("because")
		err := a.interrupt(t, shared, func(cancel context.CancelCauseFunc) { cancel(because) })
		require.ErrorIs(t, err, because)
		require.Eventually(t, func() bool { return len(marked(mark)) == 0 }, 5*time.Second, 10*time.Millisecond, "something of the trial is left running")
		do(t, shared, "please write a haiku")
	})
	t.Run("cost per trial", func(t *testing.T) {
		const trials = 5
		start := time.Now()
		for range trials {
			do(t, shared, "please write a haiku")
		}
		t.Logf("%s: %s per trial in a running agent", a.name, time.Since(start)/trials)
	})
}

func (a *realAgent) skill(t *testing.T, f *fixture) {
	if _, err := exec.LookPath("rg"); err != nil && a.name == "opencode" {
		t.Skip("skipped: opencode loads skills only with ripgrep (Debian: ripgrep)")
	}
	skill := filepath.Join(t.TempDir(), "greeter")
	require.NoError(t, os.MkdirAll(skill, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(skill, "SKILL.md"), []byte("---\nname: greeter\ndescription: greets people\n---\nSay hello warmly.\n"), 0o600))
	tr, _ := a.trial(t, f, "use the greeter")
	task := *tr.Task
	task.Skills = []string{skill}
	tr.Task = &task
	out, err := f.exec.Execute(t.Context(), tr)
	require.NoError(t, err)
	require.Equal(t, "Hello, dear", out.Output)
	require.Equal(t, "completed", toolCalls(tr)[0].Status)
	var skills []string
	for _, e := range entries(tr) {
		if e.Type == executor.EntrySkill {
			skills = append(skills, e.Text)
		}
	}
	require.Equal(t, []string{"greeter"}, skills)
}

// interrupt lets the agent's tool run and then does what is to happen to it.
func (a *realAgent) interrupt(t *testing.T, f *fixture, what func(context.CancelCauseFunc)) error {
	tr, dir := a.trial(t, f, "long work")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	done := make(chan error, 1)
	go func() {
		_, err := f.exec.Execute(ctx, tr)
		done <- err
	}()
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(dir, "ready"))
		return err == nil
	}, 60*time.Second, 10*time.Millisecond, "the tool does not start")
	what(cancel)
	err := <-done
	calls := toolCalls(tr)
	require.Len(t, calls, 1, "what there was is kept")
	return err
}

func toolCalls(tr *executor.Trial) []*executor.ToolCall {
	var calls []*executor.ToolCall
	for _, e := range entries(tr) {
		if e.Tool != nil {
			calls = append(calls, e.Tool)
		}
	}
	return calls
}

func requireRefused(t *testing.T, tr *executor.Trial) {
	t.Helper()
	asked := permissions(tr)
	require.NotEmpty(t, asked)
	require.False(t, asked[0].Allowed, asked[0].Reason)
}

// gradeFile is the score that the grader file gives for a file that must exist.
func gradeFile(t *testing.T, dir, name string) float64 {
	t.Helper()
	file := filepath.Join(t.TempDir(), "eval.yaml")
	text := "name: t\nconfig: {executor: acp, agent: opencode}\ntasks: [{id: a, prompt: x, graders: [{name: f, type: file, config: {must_exist: [" + name + "]}}]}]\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	suite, ds, err := eval.Load(file, eval.Options{Vocabulary: &eval.Vocabulary{Executors: vocabulary.Executors, Graders: grader.Builtin.Kinds()}})
	require.NoError(t, err)
	require.Empty(t, ds.Errors())
	bound, err := grader.Builtin.Bind(suite.Tasks[0].Graders[0], &grader.Env{})
	require.NoError(t, err)
	res, err := bound.Grade(t.Context(), grader.NewSubject(grader.Subject{
		Suite: suite, Task: suite.Tasks[0], Dir: func() (string, error) { return dir, nil }, Expand: func(s string) string { return s },
	}))
	require.NoError(t, err)
	return res.Score
}

// marked are the processes that carry a variable in their environment; children
// those of them that this process started.
func marked(name string) []int {
	var pids []int
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		if env, err := os.ReadFile(file); err == nil && bytes.Contains(env, []byte(name+"=")) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}

func children(name string) []int {
	var pids []int
	for _, pid := range marked(name) {
		stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			pids = append(pids, pid)
		}
	}
	return pids
}
