//go:build unix

package acp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/surroundings"
	"waza/runner/executor"
	"waza/runner/executor/acp"
	"waza/runner/record"
	"waza/runner/sandbox"
)

// Gemini announces a call with its permission request, which has the tool in the id and the
// skill in the title. Once, the skill was refused because only later messages were understood.
func TestGemini(t *testing.T) {
	t.Parallel()
	f := open(t, setup{agent: "    preset: gemini\n"})
	tr := f.trial(t, `ask {"toolCallId":"activate_skill__activate_skill_1795_0","kind":"other","status":"pending","title":"\"greeter\": greets people"}
tool {"sessionUpdate":"tool_call_update","toolCallId":"activate_skill__activate_skill_1795_0","status":"completed","kind":"other","title":"\"greeter\": greets people"}
tool {"toolCallId":"run_shell_command-1712345678901","kind":"execute","title":"ls"}
quota 12 7`)
	out, err := f.exec.Execute(t.Context(), tr)
	require.NoError(t, err)
	require.Equal(t, &record.Usage{InputTokens: 12, OutputTokens: 7}, out.Usage)
	all := entries(tr)
	require.Equal(t, "activate_skill", all[1].Tool.Name)
	require.Equal(t, "completed", all[1].Tool.Status)
	require.True(t, all[2].Permission.Allowed, all[2].Permission.Reason)
	require.Equal(t, "a skill", all[2].Permission.Reason)
	require.Equal(t, record.Entry{Type: record.EntrySkill, Text: "greeter"}, all[4])
	require.Equal(t, "run_shell_command", all[5].Tool.Name)
}

// Codex names its tools, uses commands as titles of calls, and sends messages that come from its
// program instead of its model.
func TestCodex(t *testing.T) {
	t.Parallel()
	f := open(t, setup{agent: "    preset: codex\n"})
	tr := f.trial(t, `say Warning: Model metadata for x not found. Defaulting to fallback metadata
tool {"toolCallId":"1","name":"exec_command","kind":"execute","title":"ls"}
tool {"toolCallId":"2","kind":"execute","title":"ls"}
say Done`)
	out, err := f.exec.Execute(t.Context(), tr)
	require.NoError(t, err)
	require.Equal(t, "Done", out.Output)
	all := entries(tr)
	require.Equal(t, "system", all[1].Role)
	require.Equal(t, "exec_command", all[2].Tool.Name)
	require.Equal(t, "bash", all[3].Tool.Name)
	_, err = f.exec.Execute(t.Context(), f.trial(t, "say exceeded retry limit, last status: 429 Too Many Requests, request id: 1"))
	require.ErrorContains(t, err, "codex: the provider failed: exceeded retry limit")
	require.False(t, executor.IsPermanent(err))
}

// Agents with a sandbox of their own switch it off inside one of waza, because they cannot start it
// there. The suite can change that.
func TestSandboxesOfAgents(t *testing.T) {
	t.Parallel()
	tier, err := sandbox.Choose(surroundings.SandboxAuto)
	require.NoError(t, err)
	if tier == record.TierNone {
		t.Skip("skipped: this machine has no sandboxes")
	}
	for _, c := range []struct{ config, agent, variable, want string }{
		{"", "preset: codex", "INITIAL_AGENT_MODE", "agent-full-access"},
		{"  permissions: allow\n", "preset: codex", "INITIAL_AGENT_MODE", "agent-full-access"},
		{"  permissions: deny\n", "preset: codex", "INITIAL_AGENT_MODE", "read-only"},
		{"  sandbox: off\n", "preset: codex", "INITIAL_AGENT_MODE", "agent"},
		{"", "preset: claude-code", "IS_SANDBOX", "1"},
		{"  sandbox: off\n", "preset: claude-code", "IS_SANDBOX", os.Getenv("IS_SANDBOX")},
	} {
		res := run(t, setup{config: c.config, agent: "    " + c.agent + "\n"}, "tasks: [{id: a, prompt: env "+c.variable+"}]\n")
		trial := res.Trial(t, "a", 1)
		require.Empty(t, trial.Error)
		require.Equal(t, c.want, trial.Output, "%+v", c)
	}
}

// Implausible counts are ignored.
func TestAbsurdUsage(t *testing.T) {
	t.Parallel()
	f := open(t, setup{})
	for prompt, want := range map[string]*record.Usage{
		"usage -5 3": {OutputTokens: 3}, "quota -1 -1": nil, "quota 1e300 1": nil,
	} {
		out, err := f.exec.Execute(t.Context(), f.trial(t, prompt))
		require.NoError(t, err)
		require.Equal(t, want, out.Usage, prompt)
	}
}

// opencode can give up a turn when a permission is refused, and answer with an error. Once, the
// trial ended in error and was retried, although the policy had worked.
func TestRefusalIsNoFault(t *testing.T) {
	t.Parallel()
	const words = "Internal error: The user rejected permission to use this specific tool call."
	f := open(t, setup{agent: "    preset: opencode\n", config: "  permissions: deny\n"})
	ask := `ask {"toolCallId":"1","kind":"edit","title":"write","rawInput":{"filePath":"$CWD/x"}}`
	tr := f.trial(t, "say I try\n"+ask+"\nfail -32603 "+words, "say and yet")
	out, err := f.exec.Execute(t.Context(), tr)
	require.NoError(t, err)
	require.Equal(t, "and yet", out.Output)
	require.Contains(t, entries(tr), record.Entry{Type: record.EntryStop, Text: "permission refused: " + words})
	for name, prompts := range map[string][]string{
		"nothing was refused":       {"fail -32603 " + words},
		"it was in an earlier turn": {ask, "fail -32603 " + words},
		"something else went wrong": {ask + "\nfail -32603 Internal error: disk full"},
	} {
		_, err := f.exec.Execute(t.Context(), f.trial(t, prompts...))
		require.ErrorContains(t, err, "opencode: session/prompt: Internal error", name)
	}
	f = open(t, setup{agent: "    preset: codex\n", config: "  permissions: deny\n"})
	_, err = f.exec.Execute(t.Context(), f.trial(t, ask+"\nfail -32603 "+words))
	require.ErrorContains(t, err, words, "the pattern applies only to opencode")
}

// opencode reports only the last model call of each turn, so limits on tokens were too lenient.
// waza asks opencode's own server for all calls.
func TestOpencodeUsage(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	require.NoError(t, err)
	agent := func(mode, last string) string {
		return fmt.Sprintf("  agent: {preset: opencode, command: [%q, %s], env: {FAKE_AGENT: '1', FAKE_MODE: %s}}\n", exe, last, mode)
	}
	f := open(t, setup{config: agent("counts", "acp")})
	const costs = `update {"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":0.5,"currency":"USD"}}`
	out, err := f.exec.Execute(t.Context(), f.trial(t, costs+"\nusage 1 1", "usage 200 20"))
	require.NoError(t, err)
	require.Equal(t, &record.Usage{InputTokens: 307, OutputTokens: 30, TotalTokens: 1343, CostUSD: 0.5}, out.Usage)
	require.Empty(t, f.logs.String())

	// If the server fails, the reported counts are kept.
	out, err = f.exec.Execute(t.Context(), f.trial(t, "usage 1 1")) // in session s2
	require.NoError(t, err)
	require.Equal(t, &record.Usage{InputTokens: 1, OutputTokens: 1, TotalTokens: 2}, out.Usage)
	require.Contains(t, f.logs.String(), "warning opencode: token counts cover only the last model call of each turn: ")
	f = open(t, setup{config: agent("x", "wrapper")})
	out, err = f.exec.Execute(t.Context(), f.trial(t, "usage 1 1", "usage 2 2"))
	require.NoError(t, err)
	require.Equal(t, &record.Usage{InputTokens: 3, OutputTokens: 3, TotalTokens: 6}, out.Usage)
	require.Empty(t, f.logs.String())
}

// Every preset maps its tools to names used by suites, and variants inherit the mapping.
func TestToolAliases(t *testing.T) {
	t.Parallel()
	aliases := func(config string) map[string][]string {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".waza.yaml"),
			[]byte("agents: {mine: {preset: opencode}, other: {command: x}}\n"), 0o600))
		suite := load(t, dir, "  executor: acp\n"+config)
		return acp.Kind.Capabilities(executor.Settings{Suite: suite, Options: suite.ExecutorOptions["acp"]}).ToolAliases
	}
	for _, name := range []string{"copilot", "opencode", "gemini", "claude-code", "codex", "qwen", "goose"} {
		require.NotEmpty(t, aliases("  agent: "+name+"\n"), name)
	}
	require.Equal(t, []string{"view"}, aliases("  agent: mine\n")["read"])
	require.Empty(t, aliases("  agent: other\n"))
	require.Empty(t, aliases("  agent: opencode\n  exact_tools: true\n"))
}
