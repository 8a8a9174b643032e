//go:build unix

package acp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/executor/acp"
)

// write writes files below a directory.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

// openBeside is like open, with additional files next to the suite.
func openBeside(t *testing.T, files map[string]string, s setup) *fixture {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, files)
	f := &fixture{suite: load(t, dir, s.lines(t, dir))}
	var err error
	f.exec, err = acp.Kind.Open(t.Context(), executor.Settings{Suite: f.suite, Options: f.suite.ExecutorOptions["acp"]})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.exec.Close()) })
	return f
}

// Each agent finds the instruction files at the place where it reads instructions. Files of the
// task are not replaced; in that case the instructions go before the first prompt.
func TestInstructions(t *testing.T) {
	t.Parallel()
	beside := map[string]string{"one.md": "Be brief.\n", "more/two.md": "Be kind.\n"}
	const text = "Be brief.\n\n\nBe kind.\n"
	const prefaced = `"Instructions for all that follows:\n\nBe brief.\n\n\nBe kind.\n"`
	files := "  instruction_files: [one.md, more/two.md]\n"
	for preset, place := range map[string]string{
		"copilot": ".github/copilot-instructions.md", "opencode": "AGENTS.md", "gemini": "GEMINI.md", "claude-code": "CLAUDE.md",
		"codex": "AGENTS.md", "qwen": "QWEN.md", "goose": ".goosehints", "": "AGENTS.md",
	} {
		agent := ""
		if preset != "" {
			agent = "    preset: " + preset + "\n"
		}
		f := openBeside(t, beside, setup{config: files, agent: agent})
		require.Equal(t, `""`+text+"<nil>", f.do(t, "preface\ncat "+place), preset)
	}
	for name, c := range map[string]struct {
		agent, task, want string
	}{
		"the task's own":            {"", "Be loud.", prefaced + "Be loud.<nil>"},
		"the task's own, same text": {"", "# Rules\n" + text, `""# Rules` + "\n" + text + "<nil>"},
		"parent is not a directory": {"    instructions: AGENTS.md/x.md\n", "Be loud.", prefaced + "Be loud.<nil>"},
		"custom place":              {"    instructions: docs/rules.md\n", "Be loud.", `""Be loud.<nil>`},
	} {
		f := openBeside(t, beside, setup{config: files, agent: c.agent})
		tr := f.trial(t, "preface\ncat AGENTS.md", "preface")
		dir, _ := tr.Dir()
		write(t, dir, map[string]string{"AGENTS.md": c.task})
		_, err := f.exec.Execute(t.Context(), tr)
		require.NoError(t, err)
		all := entries(tr)
		require.Equal(t, strings.HasPrefix(c.want, prefaced), all[0].Role == "system", name)
		var answers []string
		for _, e := range all {
			if e.Role == "assistant" {
				answers = append(answers, e.Text)
			}
		}
		require.Equal(t, []string{c.want, `""`}, answers, "%s: only the first prompt contains the instructions", name)
	}
}

// A symbolic link of the task that leads out of the workspace is not followed.
func TestInstructionsStayInside(t *testing.T) {
	t.Parallel()
	f := openBeside(t, map[string]string{"one.md": "Be brief."}, setup{config: "  instruction_files: [one.md]\n"})
	tr := f.trial(t, "preface")
	dir, _ := tr.Dir()
	outside := filepath.Join(t.TempDir(), "x.md")
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "AGENTS.md")))
	out, err := f.exec.Execute(t.Context(), tr)
	require.NoError(t, err)
	require.Contains(t, out.Output, "Be brief.")
	require.NoFileExists(t, outside)
}

func TestMissingInstructions(t *testing.T) {
	t.Parallel()
	f := openBeside(t, nil, setup{config: "  instruction_files: [no-such.md]\n"})
	_, err := f.exec.Execute(t.Context(), f.trial(t, "say x"))
	require.EqualError(t, err, "config.instruction_files: no-such.md: no such file")
	require.True(t, executor.IsPermanent(err))
}

// An agent starts in the task's workdir and finds its instructions there. It can work in the
// whole workspace.
func TestWorkdir(t *testing.T) {
	t.Parallel()
	f := openBeside(t, map[string]string{"one.md": "Be brief.\n"}, setup{config: "  instruction_files: [one.md]\n"})
	ask := `ask {"toolCallId":"1","kind":"edit","title":"x","rawInput":{"path":"../y.txt"}}`
	tr := f.trial(t, "cwd", "ls .", ask, "ask "+strings.ReplaceAll(ask[4:], "../y", "../../../y"))
	task := *tr.Task
	task.Inputs.Workdir = "src/app"
	tr.Task = &task
	dir, _ := tr.Dir()
	start := filepath.Join(dir, "src", "app")
	write(t, start, map[string]string{"a.txt": ""})
	_, err := f.exec.Execute(t.Context(), tr)
	require.NoError(t, err)
	var answers []string
	var allowed []bool
	for _, e := range entries(tr) {
		if e.Role == "assistant" {
			answers = append(answers, e.Text)
		}
		if e.Permission != nil {
			allowed = append(allowed, e.Permission.Allowed)
		}
	}
	require.Equal(t, []string{start, "AGENTS.md a.txt "}, answers[:2])
	require.Equal(t, []bool{true, false}, allowed, "src/y.txt is in the workspace, ../y.txt is not")
}

// A task adds instruction files to those of the suite.
func TestInstructionsOfATask(t *testing.T) {
	t.Parallel()
	f := openBeside(t, map[string]string{"one.md": "Be brief.\n", "two.md": "Be kind.\n"}, setup{config: "  instruction_files: [one.md]\n"})
	tr := f.trial(t, "cat AGENTS.md")
	task := *tr.Task
	task.Instructions = []eval.InstructionFile{{Name: "two.md", Path: filepath.Join(f.suite.Dir, "two.md")}}
	tr.Task = &task
	out, err := f.exec.Execute(t.Context(), tr)
	require.NoError(t, err)
	require.Equal(t, "Be brief.\n\n\nBe kind.\n<nil>", out.Output)
	task.Instructions = []eval.InstructionFile{{Name: "gone.md"}}
	_, err = f.exec.Execute(t.Context(), tr)
	require.EqualError(t, err, "instruction_files: gone.md: no such file")
	require.True(t, executor.IsPermanent(err))
}

// A task's limit for the first sign of life overrides the suite's.
func TestFirstEventOfATask(t *testing.T) {
	t.Parallel()
	suite := &eval.Suite{Config: eval.Config{FirstEventTimeoutSeconds: 60}}
	none, soon := 0.0, 0.5
	for limit, want := range map[*float64]time.Duration{nil: time.Minute, &none: 0, &soon: time.Second / 2} {
		require.Equal(t, want, executor.FirstEvent(suite, &eval.Task{FirstEventTimeoutSeconds: limit}))
	}
}
