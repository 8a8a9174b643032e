//go:build agents && linux

package acp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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
	"waza/eval/surroundings"
	"waza/runner/executor"
	"waza/runner/executor/acp"
	"waza/runner/grader"
	"waza/runner/grader/builtin"
	"waza/runner/proc/proctest"
	"waza/runner/record"
	"waza/runner/sandbox"
)

// TestAgents drives real agents against a mock model server, without network or accounts. `make
// test-agents` installs the agents and sets WAZA_AGENTS to their directory. Tests of missing
// agents are skipped with a message.
func TestAgents(t *testing.T) {
	dir := os.Getenv("WAZA_AGENTS")
	if dir == "" {
		t.Skip("skipped: WAZA_AGENTS must name a directory with agents; run make test-agents")
	}
	bin := filepath.Join(dir, "node_modules", ".bin")
	if _, err := os.Stat(filepath.Join(bin, "llmock")); err != nil {
		t.Skip("skipped: the mock model server (npm @copilotkit/aimock) is not installed")
	}
	for _, a := range realAgents {
		t.Run(a.name, func(t *testing.T) {
			a.bin = bin
			if _, err := os.Stat(filepath.Join(bin, a.program)); err != nil {
				t.Skipf("skipped: npm %s is not installed", a.package_)
			}
			if out, err := exec.Command(filepath.Join(bin, a.program), "--version").CombinedOutput(); err != nil && !a.noVersion {
				t.Skipf("skipped: npm %s does not run here: %v %s", a.package_, err, out)
			}
			a.run(t)
		})
	}
}

// realAgent is an agent, together with the tool names and arguments with which its model makes
// it act.
type realAgent struct {
	name, package_, program string
	noVersion               bool // it ignores --version and would wait for input
	setUp                   func(home, url string) map[string]string
	args                    []string
	shell                   func(command string) string
	skill                   string
	outside                 string // a tool call that touches the file OUTSIDE
	reads                   bool   // and which reads it, so it must exist
	toolName                string // name of the shell tool in the transcript
	counts                  bool   // it reports the token counts of the mock server
	storm                   string // its message when the provider stays overloaded
	skips                   map[string]string

	bin, home string
	env       map[string]string
}

var realAgents = []realAgent{
	{
		name: "opencode", package_: "opencode-ai", program: "opencode", setUp: setUpOpencode, toolName: "bash",
		counts: true, storm: "Rate limited",
		shell:   func(command string) string { return call("bash", "command", command, "description", "work") },
		skill:   call("skill", "name", "greeter"),
		outside: call("write", "filePath", "OUTSIDE", "content", "x"),
	},
	{
		name: "copilot", package_: "@github/copilot", program: "copilot", setUp: setUpCopilot, toolName: "bash",
		counts: true, storm: "Rate limited",
		shell:   func(command string) string { return call("bash", "command", command, "description", "work") },
		skill:   call("skill", "skill", "greeter"),
		outside: call("view", "path", "OUTSIDE"), reads: true,
	},
	{
		name: "gemini", package_: "@google/gemini-cli", program: "gemini", setUp: setUpGemini, toolName: "run_shell_command",
		args: []string{"--model", "gemini-2.5-pro"}, // without it, it asks a model which model to use
		shell: func(command string) string {
			return call("run_shell_command", "command", command, "description", "work")
		},
		skill: call("activate_skill", "name", "greeter"),
		skips: map[string]string{
			"429 storm without end":         "it retries for minutes",
			"refused outside the workspace": "it refuses that itself, without asking",
		},
	},
	{
		name: "claude-code", package_: "@zed-industries/claude-code-acp", program: "claude-code-acp", noVersion: true,
		setUp: setUpClaude, toolName: "Bash",
		shell:   func(command string) string { return call("Bash", "command", command, "description", "work") },
		skill:   call("Skill", "skill", "greeter"),
		outside: call("mcp__acp__Write", "file_path", "OUTSIDE", "content", "x"),
		skips: map[string]string{
			"429 storm without end": "it retries for minutes",
			"instruction file":      "the mock model server keeps only 64 KiB of a request, and this agent sends more",
		},
	},
	{
		name: "codex", package_: "@agentclientprotocol/codex-acp", program: "codex-acp", setUp: setUpCodex, toolName: "exec_command",
		shell: func(command string) string { return call("exec_command", "cmd", command) },
		skill: call("exec_command", "cmd", "cat .agents/skills/greeter/SKILL.md"),
		storm: "429 Too Many Requests",
		skips: map[string]string{
			"refused permission":            "its sandbox needs bubblewrap and user namespaces; without it, it does not ask",
			"refused outside the workspace": "its sandbox needs bubblewrap and user namespaces; without it, it does not ask",
		},
	},
}

// call returns a tool call of the mock model. The pairs are the names and values of its
// arguments.
func call(name string, pairs ...string) string {
	in := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		in[pairs[i]] = pairs[i+1]
	}
	arguments, _ := json.Marshal(in)
	b, _ := json.Marshal(map[string]string{"name": name, "arguments": string(arguments)})
	return string(b)
}

const testKey = "sk-agents-test-key"

func setUpOpencode(_, url string) map[string]string {
	model := map[string]any{"gpt-4": map[string]any{}, "gpt-5": map[string]any{}}
	config, _ := json.Marshal(map[string]any{
		"autoupdate": false, "share": "disabled", "model": "local/gpt-4", "small_model": "local/gpt-4",
		"provider": map[string]any{"local": map[string]any{
			"npm": "@ai-sdk/openai-compatible", "models": model, "options": map[string]any{"baseURL": url + "/v1", "apiKey": testKey},
		}},
	})
	return map[string]string{
		"OPENCODE_CONFIG_CONTENT": string(config), "OPENCODE_DISABLE_MODELS_FETCH": "true",
		"OPENCODE_DISABLE_LSP_DOWNLOAD": "true",
	}
}

func setUpCopilot(home, url string) map[string]string {
	return map[string]string{
		"COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": url + "/v1", "COPILOT_PROVIDER_API_KEY": testKey,
		"COPILOT_MODEL": "gpt-4", "COPILOT_HOME": filepath.Join(home, "copilot"), "COPILOT_AUTO_UPDATE": "false",
	}
}

func setUpGemini(_, url string) map[string]string {
	return map[string]string{"GEMINI_API_KEY": testKey, "GOOGLE_GEMINI_BASE_URL": url}
}

func setUpClaude(home, url string) map[string]string {
	return map[string]string{
		"ANTHROPIC_API_KEY": testKey, "ANTHROPIC_BASE_URL": url, "CLAUDE_CONFIG_DIR": filepath.Join(home, "claude"),
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1", // otherwise it refuses to run as root
	}
}

func setUpCodex(_, url string) map[string]string {
	config, _ := json.Marshal(map[string]any{
		"model": "gpt-5.4", "model_provider": "mock",
		"model_providers": map[string]any{
			"mock": map[string]any{"name": "mock", "base_url": url + "/v1", "wire_api": "responses", "env_key": "OPENAI_API_KEY"},
		},
	})
	return map[string]string{
		"OPENAI_API_KEY": testKey, "CODEX_CONFIG": string(config), "MODEL_PROVIDER": "mock", "NO_BROWSER": "1",
		"INITIAL_AGENT_MODE": "agent-full-access",
	}
}

// fixtures returns the answers of the model. A prompt that contains the match is answered with
// the call, and with the text once the call has a result.
func (a *realAgent) fixtures(outside string) string {
	var all []string
	say := func(match, more, response string) {
		all = append(all, fmt.Sprintf(`{"match":{"userMessage":%q%s},"response":%s}`, match, more, response))
	}
	step := func(match, call, text string) {
		say(match, `,"hasToolResult":false`, `{"toolCalls":[`+call+`]}`)
		say(match, "", fmt.Sprintf(`{"content":%q}`, text))
	}
	const busy = `{"error":{"message":"Rate limited","type":"rate_limit_error"},"status":429,"retryAfter":1}`
	say("Title this", "", `{"content":"A title"}`)
	say("write a haiku", "", `{"content":"An old silent pond"}`)
	say("and another", "", `{"content":"A frog leaps in"}`)
	step("create hello", a.shell("echo hi > hello.txt"), "Created")
	step("create refused", a.shell("echo hi > refused.txt"), "Could not")
	if a.outside != "" {
		step("touch outside", strings.ReplaceAll(a.outside, "OUTSIDE", outside), "Tried")
	}
	step("spill now", a.shell("echo hi > "+outside), "Tried")
	step("long work", a.shell("sleep 2; touch ready; sleep 300"), "Done")
	say("Say hello warmly", "", `{"content":"Hello, dear"}`) // the body of the skill, which Copilot sends as a message
	step("use the greeter", a.skill, "Hello, dear")
	for i := range 2 {
		say("short storm", fmt.Sprintf(`,"sequenceIndex":%d`, i), busy)
	}
	say("short storm", "", `{"content":"After the storm"}`)
	say("endless storm", "", busy)
	return `{"fixtures":[` + strings.Join(all, ",\n") + `]}`
}

// model starts the mock model server and returns its address.
func (a *realAgent) model(t *testing.T, outside string) string {
	file := filepath.Join(t.TempDir(), "fixtures.json")
	require.NoError(t, os.WriteFile(file, []byte(a.fixtures(outside)), 0o600))
	addr := proctest.FreeAddress(t)
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
	}, 30*time.Second, 20*time.Millisecond, "the mock model server did not start")
	return "http://" + addr
}

// open opens an executor for the agent under a policy, for a suite with an instruction file. Without
// sandboxes, one process serves all trials.
func (a *realAgent) open(t *testing.T, policy string, boxes *sandbox.Sandboxes) *fixture {
	t.Helper()
	env, err := json.Marshal(a.env)
	require.NoError(t, err)
	args, err := json.Marshal(append([]string{}, a.args...))
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rules.md"), []byte("Speak of frogs only."), 0o600))
	suite := load(t, dir, fmt.Sprintf("  executor: acp\n  agent: {preset: %s, env: %s, args: %s}\n  permissions: "+
		"%s\n  instruction_files: [rules.md]\n",
		a.name, env, args, policy))
	e, err := acp.Kind.Open(t.Context(), executor.Settings{Suite: suite, Options: suite.ExecutorOptions["acp"], Workers: 1, Sandboxes: boxes})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return &fixture{suite: suite, exec: e}
}

func (a *realAgent) trial(t *testing.T, f *fixture, prompts ...string) (*executor.Trial, string) {
	tr := f.trial(t, prompts...)
	t.Cleanup(func() {
		if t.Failed() {
			all, _ := json.MarshalIndent(tr.Transcript.Close(), "", " ")
			t.Logf("transcript:\n%s", all)
		}
	})
	tr.Env = append(tr.Env, "PATH="+a.bin+":"+os.Getenv("PATH"), "HOME="+a.home)
	dir, err := tr.Dir()
	require.NoError(t, err)
	return tr, dir
}

func (a *realAgent) run(t *testing.T) {
	a.home = t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside.txt")
	url := a.model(t, outside)
	a.env = a.setUp(a.home, url)
	mark := fmt.Sprintf("WAZA_TEST_AGENT_%d", time.Now().UnixNano())
	a.env[mark] = "1"
	shared := a.open(t, "workspace", nil)
	do := func(t *testing.T, f *fixture, prompts ...string) (*executor.Trial, string, executor.Outcome) {
		t.Helper()
		tr, dir := a.trial(t, f, prompts...)
		out, err := f.exec.Execute(t.Context(), tr)
		require.NoError(t, err)
		return tr, dir, out
	}

	scenario := func(name string, f func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			if why := a.skips[name]; why != "" {
				t.Skip("skipped: " + why)
			}
			f(t)
		})
	}
	var cold time.Duration
	var plain int64 // tokens of a single model call
	scenario("plain reply and follow-up", func(t *testing.T) {
		start := time.Now()
		_, _, out := do(t, shared, "please write a haiku")
		cold = time.Since(start)
		require.Equal(t, "An old silent pond", out.Output)
		_, _, out = do(t, shared, "please write a haiku", "and another, please")
		require.Equal(t, "A frog leaps in", out.Output)
		if a.counts {
			require.NotNil(t, out.Usage)
			require.Positive(t, out.Usage.OutputTokens)
			plain = out.Usage.InputTokens / 2
		}
	})
	scenario("instruction file", func(t *testing.T) {
		res, err := http.Get(url + "/__aimock/journal")
		require.NoError(t, err)
		defer res.Body.Close()
		asked, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Contains(t, string(asked), "Speak of frogs only.", "the model gets the instructions")
	})
	scenario("tool call that creates a file", func(t *testing.T) {
		tr, dir, out := do(t, shared, "create hello now")
		require.Equal(t, "Created", out.Output)
		if a.counts {
			require.Greater(t, out.Usage.InputTokens, plain*3/2, "of both calls of the model")
		}
		require.Equal(t, 1.0, gradeFile(t, dir, "hello.txt"))
		require.Equal(t, 0.0, gradeFile(t, dir, "missing.txt"))
		calls := toolCalls(tr)
		require.Len(t, calls, 1)
		require.Equal(t, a.toolName, calls[0].Name)
		require.Equal(t, "execute", calls[0].Kind)
		require.Equal(t, "completed", calls[0].Status)
		require.Contains(t, calls[0].Title+string(calls[0].Arguments), "hello.txt")
	})
	scenario("skill", func(t *testing.T) { a.useSkill(t, shared) })
	scenario("sandbox", func(t *testing.T) { a.inSandbox(t, url, outside) })
	scenario("refused permission", func(t *testing.T) {
		tr, dir, _ := do(t, a.open(t, "deny", nil), "create refused now")
		require.NoFileExists(t, filepath.Join(dir, "refused.txt"))
		requireRefused(t, tr)
	})
	scenario("refused outside the workspace", func(t *testing.T) {
		if a.reads {
			require.NoError(t, os.WriteFile(outside, []byte("private"), 0o600))
		}
		tr, _, _ := do(t, shared, "touch outside now")
		if !a.reads {
			require.NoFileExists(t, outside)
		}
		requireRefused(t, tr)
	})
	scenario("429 storm that passes", func(t *testing.T) {
		_, _, out := do(t, shared, "short storm")
		require.Equal(t, "After the storm", out.Output)
	})
	scenario("429 storm without end", func(t *testing.T) {
		tr, _ := a.trial(t, shared, "endless storm")
		_, err := shared.exec.Execute(t.Context(), tr)
		require.ErrorContains(t, err, a.storm)
		require.False(t, executor.IsPermanent(err))
	})
	scenario("agent killed during a trial", func(t *testing.T) {
		err := a.interrupt(t, shared, func(context.CancelCauseFunc) {
			for _, pid := range children(mark) {
				require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			}
		})
		require.ErrorContains(t, err, "during the trial")
		require.False(t, executor.IsPermanent(err))
		do(t, shared, "please write a haiku")
	})
	scenario("cancel during a tool call", func(t *testing.T) {
		cause := errors.New("because")
		err := a.interrupt(t, shared, func(cancel context.CancelCauseFunc) { cancel(cause) })
		require.ErrorIs(t, err, cause)
		require.Eventually(t, func() bool { return len(marked(mark)) == 0 }, 10*time.Second, 10*time.Millisecond,
			"a process of the trial is still running")
		do(t, shared, "please write a haiku")
	})
	scenario("cost per trial", func(t *testing.T) {
		const trials = 3
		start := time.Now()
		for range trials {
			do(t, shared, "please write a haiku")
		}
		t.Logf("%s: the first trial took %s, later trials in the running agent took %s each",
			a.name, cold.Round(time.Millisecond), (time.Since(start) / trials).Round(time.Millisecond))
	})
}

// inSandbox lets the agent work in a sandbox whose network is its model. It changes nothing outside of
// its workspace. TestAgentsSandbox of cmd/waza sees it change the workspace.
func (a *realAgent) inSandbox(t *testing.T, url, outside string) {
	tier, err := sandbox.Choose(surroundings.SandboxStrict)
	if err != nil {
		t.Skipf("skipped: %v", err)
	}
	policy, err := sandbox.PolicyOf(&surroundings.Sandbox{
		Mode: surroundings.SandboxStrict, Network: surroundings.Network{Hosts: []string{strings.TrimPrefix(url, "http://")}},
	}, t.TempDir())
	require.NoError(t, err)
	boxes, err := sandbox.Open(tier, policy)
	require.NoError(t, err)
	t.Cleanup(boxes.Close)
	f := a.open(t, "workspace", boxes)
	tr, _ := a.trial(t, f, "spill now")
	_, err = f.exec.Execute(t.Context(), tr)
	require.NoError(t, err)
	require.NotEmpty(t, toolCalls(tr))
	require.NoFileExists(t, outside)
}

func (a *realAgent) useSkill(t *testing.T, f *fixture) {
	if _, err := exec.LookPath("rg"); err != nil && a.name == "opencode" {
		t.Skip("skipped: opencode loads skills only with ripgrep (Debian: ripgrep)")
	}
	skill := filepath.Join(t.TempDir(), "greeter")
	require.NoError(t, os.MkdirAll(skill, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(skill, "SKILL.md"),
		[]byte("---\nname: greeter\ndescription: greets people\n---\nSay hello warmly.\n"), 0o600))
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
		if e.Type == record.EntrySkill {
			skills = append(skills, e.Text)
		}
	}
	require.Equal(t, []string{"greeter"}, skills)
}

// interrupt waits until the agent's tool runs and then calls what.
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
	}, 60*time.Second, 10*time.Millisecond, "the tool did not start")
	what(cancel)
	err := <-done
	calls := toolCalls(tr)
	require.Len(t, calls, 1, "the transcript keeps entries from before the interruption")
	return err
}

func toolCalls(tr *executor.Trial) []*record.ToolCall {
	var calls []*record.ToolCall
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

// gradeFile returns the score of the grader file for a file that must exist.
func gradeFile(t *testing.T, dir, name string) float64 {
	t.Helper()
	file := filepath.Join(t.TempDir(), "eval.yaml")
	text := "name: t\nconfig: {executor: acp, agent: opencode}\ntasks: [{id: a, prompt: x, graders: [{name: f, " +
		"type: file, config: {must_exist: [" + name + "]}}]}]\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	suite, ds, err := eval.Load(file,
		eval.Options{Vocabulary: &eval.Vocabulary{Executors: vocabulary.Executors, Graders: builtin.Graders.Kinds()}})
	require.NoError(t, err)
	require.Empty(t, ds.Errors())
	bound, err := builtin.Graders.Bind(suite.Tasks[0].Graders[0], &grader.Env{})
	require.NoError(t, err)
	res, err := bound.Grade(t.Context(), grader.NewSubject(grader.Subject{
		Suite: suite, Task: suite.Tasks[0], Dir: func() (string, error) { return dir, nil }, Expand: func(s string) string { return s },
	}))
	require.NoError(t, err)
	return res.Score
}

// marked returns the processes with a variable in their environment. children returns those of
// them that this process started.
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
