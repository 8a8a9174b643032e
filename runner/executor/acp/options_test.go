//go:build unix

package acp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/decode"
	"waza/runner/executor"
	"waza/runner/executor/acp"
	"waza/runner/record"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		"  executor: acp\n": "config.agent is missing; set it to one " +
			"of claude-code, codex, copilot",
		"  executor: acp\n  agent: opencod\n":                                   `unknown agent "opencod"`,
		"  executor: acp\n  agent: {args: [x]}\n":                               "command is missing",
		"  executor: acp\n  agent: {command: x, colour: red}\n":                 `unknown key "colour"`,
		"  executor: acp\n  agent: {preset: nope}\n":                            `unknown preset "nope"`,
		"  executor: acp\n  agent: {command: x, env: {'a=b': c}}\n":             "invalid environment variable name",
		"  executor: acp\n  agent: {command: x, skills: ../up}\n":               "must be a path below the workspace",
		"  executor: acp\n  agent: [x]\n":                                       "agent must be a name, or a map",
		"  executor: acp\n  agent: opencode\n  permissions: some\n":             "must be one of allow, deny, workspace",
		"  executor: acp\n  agent: opencode\n  mcp_servers: {a: {args: [x]}}\n": "mcp_servers.a has neither command nor url",
		"  executor: acp\n  agent: opencode\n  mcp_servers: {a: [x]}\n":         "mcp_servers.a must be a map",
	} {
		_, ds := tryLoad(t, t.TempDir(), config)
		errs := ds.Errors()
		require.NotEmpty(t, errs, config)
		require.Contains(t, errs[0].Message, want, config)
	}
	_, ds := tryLoad(t, t.TempDir(), "  executor: copilot-sdk\n  agent: opencode\n")
	require.Empty(t, ds.Errors())
	require.Contains(t, ds[0].Message, "agent has no effect")
}

// A missing agent is reported before the run, with its install command.
func TestMissing(t *testing.T) {
	t.Parallel()
	suite := load(t, t.TempDir(), "  executor: acp\n  agent: {preset: opencode, command: no-such-agent-here}\n")
	s := executor.Settings{Suite: suite, Options: suite.ExecutorOptions["acp"]}
	findings := acp.Kind.Preflight(t.Context(), s)
	require.Len(t, findings, 1)
	require.Equal(t, decode.CodeUnavailable, findings[0].Code)
	require.Equal(t, decode.Warning, findings[0].Severity)
	require.Contains(t, findings[0].Message, "no-such-agent-here is not installed; install it: npm install -g opencode-ai")

	// Once, a file that is not executable counted as an installed agent.
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "agent"), []byte("#!/bin/sh\n"), 0o600))
	suite = load(t, dir, "  executor: acp\n  agent: {command: [./agent]}\n")
	s = executor.Settings{Suite: suite, Options: suite.ExecutorOptions["acp"]}
	require.Len(t, acp.Kind.Preflight(t.Context(), s), 1)

	f := open(t, setup{config: "  agent: {command: no-such-agent-here}\n"})
	_, err := f.exec.Execute(t.Context(), f.trial(t, "x"))
	require.ErrorContains(t, err, "not installed")
	require.True(t, executor.IsPermanent(err))
}

func TestCopilotIsAPreset(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	exe, err := os.Executable()
	require.NoError(t, err)
	script := "#!/bin/sh\nFAKE_AGENT=1 exec '" + exe + "' \"$@\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "copilot"), []byte(script), 0o700))
	suite := load(t, t.TempDir(), "  executor: copilot-sdk\n  model: gpt-9\n")
	f := &fixture{suite: suite}
	f.exec, err = acp.CopilotKind.Open(t.Context(), executor.Settings{Suite: suite, Options: suite.ExecutorOptions["copilot-sdk"], Workers: 1})
	require.NoError(t, err)
	defer f.exec.Close()
	do := func(prompts ...string) (*executor.Trial, executor.Outcome, error) {
		tr := f.trial(t, prompts...)
		tr.Model = "gpt-9"
		tr.Env = append(tr.Env, "PATH="+bin+":/usr/bin:/bin")
		out, err := f.exec.Execute(t.Context(), tr)
		return tr, out, err
	}
	_, _, err = do("say Error: No authentication information found.")
	require.EqualError(t, executor.AsStop(err),
		"copilot: the agent is not logged in: Error: No authentication information found.; to log in: copilot login")
	_, out, err := do("env COPILOT_MODEL\nargs")
	require.NoError(t, err)
	require.Equal(t, "gpt-9--acp --disallow-temp-dir", out.Output)

	// The provider's failure arrives as a message of the agent.
	tr, out, err := do("say Info: Request failed due to a transient API error. Retrying...\nsay Error: Model " +
		"'gpt-4' not found on provider at http://x")
	require.EqualError(t, err, "copilot: the provider failed: Error: Model 'gpt-4' not found on provider at http://x")
	require.False(t, executor.IsPermanent(err))
	require.Empty(t, out.Output)
	require.Equal(t, "system", entries(tr)[1].Role)
	// A model can write about errors, and a retry can succeed.
	_, out, err = do("say Info: Request failed due to a transient API error. Retrying...\nsay Here it is: Error: 5\nusage 1 1")
	require.NoError(t, err)
	require.Equal(t, "Here it is: Error: 5", out.Output)

	// Its usage covers the whole session, its titles describe calls, and its skills have a
	// title.
	tr, out, err = do("usage 10 5\nsay a", `tool {"toolCallId":"1","title":"List","kind":"execute","rawInput":{"command":"ls"}}
tool {"toolCallId":"2","title":"Using skill: greeter","kind":"other","rawInput":{"skill":"greeter"}}
usage 20 7`)
	require.NoError(t, err)
	require.Equal(t, &record.Usage{InputTokens: 20, OutputTokens: 7, TotalTokens: 27}, out.Usage)
	var got []string
	for _, e := range entries(tr) {
		switch e.Type {
		case record.EntryToolCall:
			got = append(got, e.Tool.Name)
		case record.EntrySkill:
			got = append(got, "skill "+e.Text)
		}
	}
	require.Equal(t, []string{"bash", "skill", "skill greeter"}, got)
}

// A skill counts as invoked only if its call succeeded. Once, a skill that failed to load
// counted, too.
func TestSkillThatFails(t *testing.T) {
	t.Parallel()
	skill := func(id, name, status string) string {
		return fmt.Sprintf(`tool {"toolCallId":%q,"title":"skill","kind":"other","status":%q,"rawInput":{"name":%q}}`, id, status, name) + "\n"
	}
	done := func(id, status string) string {
		return fmt.Sprintf(`tool {"sessionUpdate":"tool_call_update","toolCallId":%q,"status":%q}`, id, status) + "\n"
	}
	for _, c := range []struct {
		name, prompt string
		want         []string
	}{
		{"one fails", skill("1", "a", "pending") + skill("2", "b", "pending") + done("1", "failed") + done("2", "completed"), []string{"b"}},
		{"the second ends first", skill("1", "a", "pending") + skill("2", "b", "completed") + done("1", "completed"), []string{"a", "b"}},
		{"its end is not reported", skill("1", "a", "pending") + skill("2", "b", "completed"), []string{"a", "b"}},
		{
			"permission is refused",
			skill("1", "a", "pending") + `ask {"toolCallId":"1","kind":"read","title":"skill","locations":[{"path":"/etc/passwd"}]}` + "\n",
			nil,
		},
	} {
		f := open(t, setup{agent: "    preset: opencode\n"})
		tr := f.trial(t, c.prompt)
		_, err := f.exec.Execute(t.Context(), tr)
		require.NoError(t, err)
		var got []string
		for _, e := range entries(tr) {
			if e.Type == record.EntrySkill {
				got = append(got, e.Text)
			}
		}
		require.Equal(t, c.want, got, c.name)
	}
	f := open(t, setup{agent: "    preset: opencode\n"})
	tr := f.trial(t, skill("1", "a", "in_progress")+"die 1")
	_, err := f.exec.Execute(t.Context(), tr)
	require.ErrorContains(t, err, "during the trial")
	require.Contains(t, entries(tr), record.Entry{Type: record.EntrySkill, Text: "a"}, "entries from before the failure are kept")
}

func TestModel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ mode, agent, prompt, want string }{
		{"options", "", "model", "m-1"},
		{"models", "", "model", "m-1"},
		{"", "    model_args: [--model, '{model}']\n", "args", "--model m-1"},
		{"", "    model_env: THE_MODEL\n", "env THE_MODEL", "m-1"},
	} {
		f := open(t, setup{mode: c.mode, agent: c.agent})
		tr := f.trial(t, c.prompt)
		tr.Model = "m-1"
		out, err := f.exec.Execute(t.Context(), tr)
		require.NoError(t, err)
		require.Equal(t, c.want, out.Output, c.mode)
		require.Empty(t, f.logs.String())
	}
	f := open(t, setup{})
	tr := f.trial(t, "say x")
	tr.Model = "m-1"
	_, err := f.exec.Execute(t.Context(), tr)
	require.NoError(t, err)
	require.Contains(t, f.logs.String(), "config.model has no effect")
}

// An agent offers efforts for the chosen model, so the effort is set after the model.
func TestEffort(t *testing.T) {
	t.Parallel()
	do := func(effort, mode, model string) (executor.Outcome, string, error) {
		f := open(t, setup{mode: mode, config: "  reasoning_effort: " + effort + "\n", agent: "    preset: codex\n"})
		tr := f.trial(t, "model")
		tr.Model = model
		out, err := f.exec.Execute(t.Context(), tr)
		return out, f.logs.String(), err
	}
	out, logs, err := do("high", "options", "m-1")
	require.NoError(t, err)
	require.Equal(t, "m-1 thinks high", out.Output)
	require.Empty(t, logs)
	out, _, err = do("medium", "options", "m-1")
	require.NoError(t, err)
	require.Equal(t, "m-1", out.Output, "a choice that is already set is not sent")
	_, _, err = do("max", "options", "m-1")
	require.EqualError(t, executor.AsStop(err),
		`codex: the agent rejects the reasoning effort "max" (no such level); it offers low, medium, high; change `+
			`config.reasoning_effort in the suite`)
	_, logs, err = do("low", "models", "m-1")
	require.NoError(t, err)
	require.Contains(t, logs, "config.reasoning_effort has no effect: codex offers no choice of reasoning effort for this model")
}

// Once, a model that the agent does not have failed every trial of the run with the agent's raw
// answer. Now it stops the run, and the error lists the models.
func TestModelNotOffered(t *testing.T) {
	t.Parallel()
	const choose = "; choose one with --model, or with config.model in the suite"
	for _, c := range []struct{ mode, model, want string }{
		{"options", "claude-opus-4.1", `; did you mean "acme/claude-opus-4-1"?; it offers default, acme/claude-opus-4-1, acme/m-1` + choose},
		{
			"models", "gpt5",
			`; did you mean "gpt-5"?; it offers gpt-0, gpt-1, gpt-2, gpt-3, gpt-4, gpt-5, gpt-6, gpt-7, gpt-8, gpt-9, ` +
				`gpt-10, gpt-11 and 3 more` + choose,
		},
		{"no models", "claude-opus-4.1", choose},
	} {
		f := open(t, setup{mode: c.mode, agent: "    preset: codex\n"})
		tr := f.trial(t, "say x")
		tr.Model = c.model
		_, err := f.exec.Execute(t.Context(), tr)
		stop := executor.AsStop(err)
		require.NotNil(t, stop, "%v", err)
		require.False(t, stop.Orderly)
		require.EqualError(t, stop, fmt.Sprintf("codex: the agent rejects the model %q (no such model)", c.model)+c.want)
	}
}

func TestSkills(t *testing.T) {
	t.Parallel()
	f := open(t, setup{agent: "    skills: .agents/skills\n"})
	dir := filepath.Join(t.TempDir(), "greeter")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data"), 0o700))
	for _, file := range []string{"SKILL.md", "data/x.bin"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte("\x00"+file), 0o600))
	}
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "passwd")))
	tr := f.trial(t, `ls .agents/skills/greeter
tool {"toolCallId":"1","title":"cat","kind":"execute","status":"completed","rawInput":{"command":"cat .agents/skills/greeter/SKILL.md"}}
say done`)
	task := *tr.Task
	task.Skills = []string{dir}
	tr.Task = &task
	ws, _ := tr.Dir()
	prepared := 0
	tr.Prepared = func() {
		prepared++
		require.FileExists(t, filepath.Join(ws, ".agents", "skills", "greeter", "SKILL.md"))
	}
	_, err := f.exec.Execute(t.Context(), tr)
	require.NoError(t, err)
	require.Equal(t, 1, prepared, "the skills must not count as changes of the agent")
	all := entries(tr)
	require.Equal(t, "SKILL.md data ", all[1].Text)
	require.Equal(t, record.Entry{Type: record.EntrySkill, Text: "greeter"}, all[3])
	b, err := os.ReadFile(filepath.Join(ws, ".agents", "skills", "greeter", "data", "x.bin"))
	require.NoError(t, err)
	require.Equal(t, "\x00data/x.bin", string(b))
}

// Agents used to get the suite with its expected answers if it was inside the skill, as in
// skills/NAME/evals/, or inside a skill that was reached through a link.
func TestSkillsWithoutTheSuite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ place, want string }{{"evals", "SKILL.md "}, {".", "SKILL.md more.txt "}, {"linked/evals", "SKILL.md "}} {
		place, linked := strings.CutPrefix(c.place, "linked/")
		f := open(t, setup{agent: "    skills: .agents/skills\n"})
		skill := filepath.Join(t.TempDir(), "greeter")
		dir := filepath.Join(skill, place)
		require.NoError(t, os.MkdirAll(dir, 0o700))
		for _, file := range []string{filepath.Join(skill, "SKILL.md"), filepath.Join(dir, "eval.yaml"), filepath.Join(dir, "more.txt")} {
			require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
		}
		f.suite.Dir, f.suite.File = dir, filepath.Join(dir, "eval.yaml")
		tr := f.trial(t, "ls .agents/skills/greeter\nsay done")
		task := *tr.Task
		task.Skills = []string{skill}
		if linked {
			link := filepath.Join(t.TempDir(), "greeter")
			require.NoError(t, os.Symlink(skill, link))
			require.NoError(t, os.Symlink(filepath.Join("evals", "more.txt"), filepath.Join(skill, "answers")))
			task.Skills = []string{link}
		}
		tr.Task = &task
		_, err := f.exec.Execute(t.Context(), tr)
		require.NoError(t, err)
		require.Equal(t, c.want+"done", entries(tr)[1].Text, c.place)
	}
}

func TestMCPServers(t *testing.T) {
	t.Parallel()
	f := open(t, setup{
		config: "  mcp_servers:\n    b: {command: b-mcp, args: [x], env: {K: v}}\n    a: {type: http, url: 'http://x', headers: {H: v}}\n",
	})
	require.JSONEq(t, `[{"type":"http","name":"a","url":"http://x","headers":[{"name":"H","value":"v"}]},
		{"name":"b","command":"b-mcp","args":["x"],"env":[{"name":"K","value":"v"}]}]`, f.do(t, "mcp"))
	own := f.trial(t, "mcp")
	own.Servers = []executor.Server{{Name: "b", Command: "/bin/own", Args: []string{"y"}}}
	out, err := f.exec.Execute(t.Context(), own)
	require.NoError(t, err)
	require.JSONEq(t, `[{"name":"b","command":"/bin/own","args":["y"],"env":[]},
		{"type":"http","name":"a","url":"http://x","headers":[{"name":"H","value":"v"}]}]`, out.Output)
	f = open(t, setup{config: "  mcp_servers: {a: {type: sse, url: 'http://x'}}\n"})
	_, err = f.exec.Execute(t.Context(), f.trial(t, "say x"))
	require.ErrorContains(t, err, "cannot use mcp_servers.a")
	require.True(t, executor.IsPermanent(err))
}

// .waza.yaml adds agents to the table and overrides built-in ones.
func TestProjectAgents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	exe, err := os.Executable()
	require.NoError(t, err)
	project := "agents:\n  house: {command: ['" + exe + "', a], args: b, env: {FAKE_AGENT: '1'}}\n  copilot: {preset: copilot, env: {X: y}}\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".waza.yaml"), []byte(project), 0o600))
	suite := load(t, dir, "  executor: acp\n  agent: house\n")
	o := suite.ExecutorOptions["acp"].(*acp.Options)
	require.NotNil(t, o.Project, "definitions in .waza.yaml are part of a trial's identity")
	e, err := acp.Kind.Open(t.Context(), executor.Settings{Suite: suite, Options: o, Workers: 1})
	require.NoError(t, err)
	defer e.Close()
	f := &fixture{suite: suite, exec: e}
	require.Equal(t, "a b", f.do(t, "args"))
	_, ds := tryLoad(t, dir, "  executor: acp\n  agent: hous\n")
	require.Contains(t, ds.Errors()[0].Message, "copilot, gemini, goose, house, opencode")
	require.Equal(t, "house", ds.Errors()[0].Suggestion)
}
