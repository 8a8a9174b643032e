package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// writesOrSays is an agent that writes the file of a prompt "write NAME: TEXT", and otherwise says the
// prompt.
func writesOrSays(_ context.Context, trial *executor.Trial) (string, error) {
	order, isFile := strings.CutPrefix(trial.Prompt, "write ")
	if !isFile {
		return strings.TrimPrefix(trial.Prompt, "say "), nil
	}
	name, text, _ := strings.Cut(order, ": ")
	dir, err := trial.Dir()
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", err
	}
	return "done", os.WriteFile(file, []byte(text), 0o600)
}

// Each assertion of skill-validator passes and fails as its AssertionEvaluator decides.
func TestDotnetAssertions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ assertion, passes, fails string }{
		{"type: output_contains, value: NU1101", "say error nu1101.", "say NU110"},
		{"type: output_not_contains, value: NU1101", "say NU110", "say nu1101"},
		{`type: output_matches, pattern: 'CS\d{4}(?!\d)'`, "say cs0103", "say cs01034"},
		{`type: output_not_matches, pattern: '(?s)a.b'`, "say ab", "say A\\nB"},
		{"type: exit_success", "say x", "say "},
		{"type: file_exists, path: '**/*.csv'", "write a/b/x.csv: 1", "write a/x.cs: 1"},
		{"type: file_exists, path: 'a[1].txt'", "write a[1].txt: 1", "write a1.txt: 1"},
		{"type: file_not_exists, path: '*.csproj'", "write sub/a.csproj: 1", "write a.csproj: 1"},
		{"type: file_contains, path: a.cs, value: 'Span<byte>'", "write a.cs: new Span<byte>()", "write a.cs: span<byte>"},
		{"type: file_contains, path: a.cs, value: 'Span'", "write a.cs: Span", "write b.cs: Span"},
		{"type: file_not_contains, path: a.cs, value: 'a.b'", "write a.cs: acb", "write a.cs: a.b"},
		{"type: file_not_contains, path: a.cs, value: 'a.b'", "write a.cs: acb", "write b.cs: acb"},
		{"type: file_contains, path: '**/*.cs', value: 'a.b'", "write x/a.cs: a.b", "write a.txt: a.b"},
		{"type: file_not_contains, path: '*.cs', value: 'a.b'", "write a.cs: acb", "write b.cs: a.b"},
		{"type: file_not_contains, path: '*.cs', value: 'a.b'", "write a.cs: acb", "write b.txt: acb"},
	} {
		t.Run(c.assertion+" "+c.fails, func(t *testing.T) {
			t.Parallel()
			suite := fmt.Sprintf("-- eval.yaml --\nscenarios:\n"+
				"  - {name: good, prompt: \"%s\", assertions: [{%s}]}\n"+
				"  - {name: bad, prompt: \"%s\", assertions: [{%s}]}\n", c.passes, c.assertion, c.fails, c.assertion)
			res, _ := runnertest.RunAgent(t, suite, record.Request{Executor: "agent", Trials: 1}, writesOrSays)
			require.Equal(t, record.Passed, res.Task(t, "good").Verdict)
			require.Equal(t, record.Failed, res.Task(t, "bad").Verdict)
		})
	}
}

// The rules on tools, turns and the use of the skill decide, too. The arm without the skill has no rule
// about its use.
func TestDotnetConstraints(t *testing.T) {
	t.Parallel()
	const suite = `
-- eval.yaml --
scenarios:
  - {name: uses bash, prompt: bash, expect_tools: [bash]}
  - {name: lacks bash, prompt: view, expect_tools: [bash]}
  - {name: rejects bash, prompt: bash, reject_tools: [bash]}
  - {name: is silent, prompt: bash, expect_activation: false}
  - {name: is loud, prompt: skill, expect_activation: false}
  - {name: should be loud, prompt: bash, expect_activation: true}
-- SKILL.md --
---
name: clean
description: Cleans projects.
---
`
	res, _ := runnertest.RunAgent(t, suite, record.Request{Executor: "agent", Trials: 1},
		func(_ context.Context, trial *executor.Trial) (string, error) {
			if trial.Prompt == "skill" {
				if runnertest.Skilled(trial) {
					trial.Transcript.Skill("clean")
				}
				return "done", nil
			}
			trial.Transcript.ToolCall(record.ToolCall{Name: trial.Prompt})
			return "done", nil
		})
	got := map[string]record.Verdict{}
	for _, task := range res.Tasks {
		got[task.ID] = task.Verdict
	}
	require.Equal(t, map[string]record.Verdict{
		"uses bash": "passed", "uses bash#baseline": "passed",
		"lacks bash": "failed", "lacks bash#baseline": "failed",
		"rejects bash": "failed", "rejects bash#baseline": "failed",
		"is silent": "passed", "is silent#baseline": "passed",
		"is loud": "failed", "is loud#baseline": "passed",
		"should be loud": "failed", "should be loud#baseline": "passed",
	}, got)
}

// The scenario of dotnet/skills: a trial passes if the answer has all three names and the judge finds
// all five criteria. The agent's answer has the names that its trial says, and [N] for each criterion N
// that it meets.
func TestDotnetScenario(t *testing.T) {
	original, err := os.ReadFile(filepath.FromSlash("../../shared/suites/formats/dotnet-scenarios/eval.yaml"))
	if err != nil {
		t.Skip("no shared suites beside the checkout")
	}
	const all = "AppendTargetFrameworkToOutputPath, IntermediateOutputPath"
	answers := map[int]struct {
		text  string
		want  record.Verdict
		score float64
	}{
		1: {all + " [1][2][3][4][5]", "passed", 1},
		2: {strings.ToLower(all) + " [1][2][3][4][5]", "passed", 1},
		// IntermediateOutputPath is missing: 2 of 3 texts, and the rubric.
		3: {"AppendTargetFrameworkToOutputPath [1][2][3][4][5]", "failed", 3.0 / 4},
		// The judge finds 4 of 5 criteria: 3 texts, and a part of the rubric.
		4: {all + " [1][2][3][4]", "failed", 3.8 / 4},
		5: {"I cannot build it.", "failed", 0},
	}
	judge := runnertest.NewModel(t, func(asked runnertest.Asked) runnertest.Answer {
		var marks []map[string]any
		for n := 1; n <= 5; n++ {
			marks = append(marks, map[string]any{
				"number": n, "passed": strings.Contains(asked.Prompt, fmt.Sprintf("[%d]", n)), "evidence": "the answer",
			})
		}
		return runnertest.Answer{Tool: "submit_marks", Arguments: map[string]any{"marks": marks}}
	})
	t.Setenv("OPENAI_BASE_URL", judge.URL)
	t.Setenv("OPENAI_API_KEY", "x")
	dir := filepath.Join(t.TempDir(), "tests", "dotnet-msbuild", "check-bin-obj-clash")
	for name, data := range map[string]string{
		"eval.yaml": string(original), "Lib/Lib.csproj": "<Project/>",
		"../../../plugins/dotnet-msbuild/skills/check-bin-obj-clash/SKILL.md": "---\nname: check-bin-obj-clash\ndescription: d\n---\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
	}
	res := runnertest.RunFile(t, filepath.Join(dir, "eval.yaml"), eval.Options{JudgeModel: "gpt-5"}, record.Request{Executor: "agent"},
		func(_ context.Context, trial *executor.Trial) (string, error) {
			work, err := trial.Dir()
			if err != nil {
				return "", err
			}
			if _, err := os.Stat(filepath.Join(work, "Lib", "Lib.csproj")); err != nil {
				return "", err
			}
			if _, err := os.Stat(filepath.Join(work, "eval.yaml")); err == nil {
				return "", fmt.Errorf("the agent sees the rubric")
			}
			if !runnertest.Skilled(trial) {
				return "I cannot build it.", nil
			}
			return answers[trial.Num].text, nil
		})
	const id = "Diagnose bin/obj output path clashes"
	for n, want := range answers {
		got := res.Trial(t, id, n)
		require.Equal(t, want.want, got.Verdict, "trial %d: %s", n, got.Error)
		require.InDelta(t, want.score, *got.Score, 1e-9, "trial %d", n)
		require.InDelta(t, 0, *res.Trial(t, id+"#baseline", n).Score, 1e-9)
	}
}

// Commands of the setup run in the workspace before the agent, and their exit codes do not count.
func TestDotnetSetup(t *testing.T) {
	t.Parallel()
	const suite = `
-- eval.yaml --
scenarios:
  - name: a
    prompt: b
    setup:
      files: [{path: in.txt, content: in}]
      commands: ["cat in.txt > log; exit 7", "cat log > 'out.txt'", "if"]
    assertions: [{type: output_contains, value: in.txt log out.txt}, {type: file_contains, path: out.txt, value: in}]
`
	res, _ := runnertest.RunAgent(t, suite, record.Request{Executor: "agent", Trials: 1},
		func(_ context.Context, trial *executor.Trial) (string, error) {
			dir, err := trial.Dir()
			if err != nil {
				return "", err
			}
			entries, err := os.ReadDir(dir)
			var names []string
			for _, e := range entries {
				names = append(names, e.Name())
			}
			slices.Sort(names)
			return strings.Join(names, " "), err
		})
	require.Equal(t, record.Passed, res.Trial(t, "a", 1).Verdict, res.Trial(t, "a", 1).Error)
}
