//go:build agents && linux

package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"waza/runner/proc/proctest"
	"waza/runner/record/recordtest"
)

// apiKey must not be printed or left on disk.
const apiKey = "sk-waza-f3a91c07d5e84b62"

// realAgent is an agent with a user's configuration.
type realAgent struct {
	name, npm string
	// program is its program if the name differs, which then has no --version.
	program string
	// chosen are the flags that select it.
	chosen []string
	// setUp returns the agent's environment, for a home and a model's address.
	setUp func(home, url string) []string
	// skills is its directory for skills in the user's home, and login one of those that it keeps its
	// login and settings in.
	skills, login string
	// judge is its prefix for names of judge tools.
	judge string
	// tools and arguments are its names where they differ from Copilot's.
	tools, arguments map[string]string
}

var opencode = realAgent{
	name: "opencode", npm: "opencode-ai", judge: "waza_judge_",
	chosen: []string{"--agent", "opencode", "--model", "local/gpt-4"}, skills: ".config/opencode/skills",
	login: ".local/share/opencode",
	setUp: func(string, string) []string {
		return []string{
			`OPENCODE_CONFIG_CONTENT={"autoupdate":false,"share":"disabled","model":"local/gpt-4","small_model":"local/gpt-4","provider":{"local":` +
				`{"npm":"@ai-sdk/openai-compatible","models":{"gpt-4":{}},"options":{"baseURL":"{env:OPENAI_BASE_URL}","apiKey":"{env:WAZA_TEST_API_KEY}"}}}}`,
			"OPENCODE_DISABLE_MODELS_FETCH=true", "OPENCODE_DISABLE_LSP_DOWNLOAD=true",
		}
	},
	tools:     map[string]string{"view": "read", "create": "write"},
	arguments: map[string]string{"path": "filePath", "file_text": "content", "old_str": "oldString", "new_str": "newString", "skill": "name"},
}

var copilot = realAgent{
	name: "copilot", npm: "@github/copilot", judge: "waza_judge-", chosen: []string{"--executor", "copilot-sdk"}, skills: ".copilot/skills",
	login: ".copilot",
	setUp: func(home, url string) []string {
		return []string{
			"COPILOT_OFFLINE=true", "COPILOT_PROVIDER_BASE_URL=" + url, "COPILOT_PROVIDER_API_KEY=" + apiKey,
			"COPILOT_MODEL=gpt-4", "COPILOT_HOME=" + filepath.Join(home, ".copilot"), "COPILOT_AUTO_UPDATE=false",
		}
	},
}

var gemini = realAgent{
	name: "gemini", npm: "@google/gemini-cli", login: ".gemini",
	chosen: []string{"--executor", "acp", "--agent", "gemini", "--model", "gemini-2.5-pro"},
	setUp: func(_, url string) []string {
		return []string{"GEMINI_API_KEY=" + apiKey, "GOOGLE_GEMINI_BASE_URL=" + strings.TrimSuffix(url, "/v1")}
	},
	tools: map[string]string{"bash": "run_shell_command"},
}

var claudeCode = realAgent{
	name: "claude-code", npm: "@zed-industries/claude-code-acp", program: "claude-code-acp", login: ".claude",
	chosen: []string{"--executor", "claude-code", "--model", "claude-sonnet-4-5"},
	setUp: func(_, url string) []string {
		return []string{"ANTHROPIC_API_KEY=" + apiKey, "ANTHROPIC_BASE_URL=" + strings.TrimSuffix(url, "/v1")}
	},
	tools: map[string]string{"bash": "Bash"},
}

var codex = realAgent{
	name: "codex", npm: "@agentclientprotocol/codex-acp", program: "codex-acp", login: ".codex",
	chosen: []string{"--executor", "codex", "--model", "gpt-5.4"},
	setUp: func(_, url string) []string {
		return []string{
			"MODEL_PROVIDER=mock", "NO_BROWSER=1",
			`CODEX_CONFIG={"model":"gpt-5.4","model_provider":"mock","model_providers":{"mock":{"name":"mock","base_url":"` + url +
				`","wire_api":"responses","env_key":"OPENAI_API_KEY"}}}`,
		}
	},
	tools: map[string]string{"bash": "exec_command"}, arguments: map[string]string{"command": "cmd"},
}

// programs returns the directory of the agent and the mock model server. It skips the test if
// one is missing.
func programs(t *testing.T, a realAgent) string {
	t.Helper()
	dir := os.Getenv("WAZA_AGENTS")
	if dir == "" {
		t.Skip("skipped: WAZA_AGENTS names no directory with agents; run make test-agents")
	}
	bin := filepath.Join(dir, "node_modules", ".bin")
	if _, err := os.Stat(filepath.Join(bin, "llmock")); err != nil {
		t.Skip("skipped: the mock model server (npm @copilotkit/aimock) is not installed")
	}
	if a.name == "" {
		return bin
	}
	if a.program != "" {
		if _, err := os.Stat(filepath.Join(bin, a.program)); err != nil {
			t.Skipf("skipped: npm %s is not installed: %v", a.npm, err)
		}
		return bin
	}
	if out, err := exec.Command(filepath.Join(bin, a.name), "--version").CombinedOutput(); err != nil {
		t.Skipf("skipped: npm %s is not installed, or does not run here: %v %s", a.npm, err, out)
	}
	return bin
}

// user has a home, an agent and records of runs.
type user struct {
	home, state string
	env         []string
}

// userOf makes a user of an agent whose model follows a script of testdata/agents. The zero
// agent means none.
func userOf(t *testing.T, a realAgent, script string, more ...string) *user {
	t.Helper()
	bin := programs(t, a)
	u := &user{home: t.TempDir(), state: t.TempDir()}
	url := startModel(t, bin, a.script(t, script))
	for _, kv := range os.Environ() {
		// The tester's own settings would affect the agents.
		if !slices.ContainsFunc([]string{"XDG_", "OPENCODE_", "COPILOT_", "GEMINI_", "ANTHROPIC_", "CLAUDE_", "CODEX_"}, func(prefix string) bool {
			return strings.HasPrefix(kv, prefix)
		}) {
			u.env = append(u.env, kv)
		}
	}
	u.env = append(u.env, "HOME="+u.home, "WAZA_STATE="+u.state, "PATH="+bin+":"+os.Getenv("PATH"),
		"WAZA_TEST_API_KEY="+apiKey, "OPENAI_API_KEY="+apiKey, "OPENAI_BASE_URL="+url)
	u.env = append(u.env, more...)
	if a.setUp != nil {
		u.env = append(u.env, a.setUp(u.home, url)...)
	}
	return u
}

// run runs a suite, and checks that the key is not in any output.
func (u *user) run(t *testing.T, args ...string) (*recordtest.Result, int) {
	t.Helper()
	out, code := u.waza(t, append([]string{"run", "--json", "--verbose"}, args...)...)
	return recordtest.Decode(t, out), code
}

// waza runs a command of waza.
func (u *user) waza(t *testing.T, args ...string) (stdout []byte, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "waza", args...)
	cmd.Env = u.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, _ = cmd.Output()
	require.NotContains(t, string(stdout), apiKey)
	require.NotContains(t, stderr.String(), apiKey)
	u.requireNoKey(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("waza %s: exit code %d\n%s", strings.Join(args, " "), cmd.ProcessState.ExitCode(), stderr.String())
		}
	})
	return stdout, cmd.ProcessState.ExitCode()
}

// requireNoKey checks that no file of waza contains the key.
func (u *user) requireNoKey(t *testing.T) {
	t.Helper()
	read := 0
	require.NoError(t, filepath.WalkDir(u.state, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a worker and the embedded fleet remove files while the test reads
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		read += len(b)
		require.NotContains(t, string(b), apiKey, path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}))
	require.Positive(t, read, "nothing is recorded")
}

// line is an entry of a model's script; see testdata/agents/README.md.
type line struct {
	Prompts []string `yaml:"prompts"`
	Calls   []struct {
		Times int                       `yaml:"times"`
		Tool  map[string]map[string]any `yaml:",inline"`
	} `yaml:"calls"`
	Says   string `yaml:"says"`
	Error  string `yaml:"error"`
	Tokens int    `yaml:"tokens"`
}

// script converts a model's script to fixtures of the mock model server.
func (a realAgent) script(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "agents", name))
	require.NoError(t, err)
	var lines []line
	dec := yaml.NewDecoder(strings.NewReader(strings.ReplaceAll(string(text), "SECRET", apiKey)))
	dec.KnownFields(true)
	require.NoError(t, dec.Decode(&lines))
	fixtures := []any{fixture("Title this", 0, map[string]any{"content": "A title"})}
	for _, l := range lines {
		for _, prompt := range l.Prompts {
			fixtures = append(fixtures, a.fixtures(t, prompt, l)...)
		}
	}
	out, err := json.Marshal(map[string]any{"fixtures": fixtures})
	require.NoError(t, err)
	return out
}

// fixture returns the answer to a prompt after a number of answers.
func fixture(prompt string, turn int, response map[string]any) any {
	return map[string]any{"match": map[string]any{"userMessage": prompt, "turnIndex": turn}, "response": response}
}

func (a realAgent) fixtures(t *testing.T, prompt string, l line) []any {
	if l.Error != "" {
		return []any{fixture(prompt, 0, map[string]any{
			"error": map[string]any{"message": l.Error, "type": "invalid_request_error"}, "status": 400})}
	}
	usage := map[string]any{"prompt_tokens": max(100, l.Tokens), "completion_tokens": 10}
	var all []any
	for turn, c := range l.Calls {
		var calls []any
		for name, arguments := range c.Tool {
			for i := range max(1, c.Times) {
				calls = append(calls, a.call(t, name, arguments, i+1))
			}
		}
		all = append(all, fixture(prompt, turn, map[string]any{"toolCalls": calls, "usage": usage}))
	}
	return append(all, fixture(prompt, len(l.Calls), map[string]any{"content": l.Says, "usage": usage}))
}

// call returns the nth identical call of a tool, by the agent's name for it.
func (a realAgent) call(t *testing.T, name string, arguments map[string]any, n int) any {
	own := maps.Clone(arguments)
	for from, to := range a.arguments {
		if v, ok := own[from]; ok && !strings.HasPrefix(name, "waza_") { // these are the same for all agents
			delete(own, from)
			own[to] = v
		}
	}
	text, err := json.Marshal(own)
	require.NoError(t, err)
	return map[string]any{"name": a.tool(name), "arguments": strings.ReplaceAll(string(text), "NUMBER", strconv.Itoa(n))}
}

// tool returns the agent's name for a tool of Copilot.
func (a realAgent) tool(name string) string {
	if tool, ok := strings.CutPrefix(name, "judge:"); ok {
		return a.judge + tool
	}
	if own, ok := a.tools[name]; ok {
		return own
	}
	return name
}

// startModel starts the mock model server and returns its address.
func startModel(t *testing.T, bin string, fixtures []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fixtures.json")
	require.NoError(t, os.WriteFile(file, fixtures, 0o600))
	addr := proctest.FreeAddress(t)
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	var log bytes.Buffer
	cmd := exec.Command(filepath.Join(bin, "llmock"), "-p", port, "-f", file)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
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
	}, time.Minute, 20*time.Millisecond, "the mock model server does not start")
	return "http://" + addr + "/v1"
}
