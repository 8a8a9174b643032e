package trial_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// expanding returns a suite of a hundred kilobytes that uses one variable so often that it would
// expand to gigabytes.
func expanding(config, task string) string {
	return fmt.Sprintf("\n-- eval.yaml --\nname: s\ninputs: {a: %s}\nconfig: {retry_errors: 3, %s}\ntasks:\n  - {id: t, %s}\n",
		strings.Repeat("x", 100<<10), config, task)
}

// Template variables could expand a prompt, a reply or a check to any length, until the memory
// of the machine was full.
func TestAttackTextsDoNotGrowWithoutBound(t *testing.T) {
	t.Parallel()
	often := strings.Repeat("{{a}}", 10_000)
	nearly := strings.Repeat("{{a}}", 75)
	const single, all = `is longer than 8 MiB after its template variables ` +
		`are replaced`, "the texts of the trial exceed 32 MiB in total after expansion of their template variables"
	for _, tt := range []struct{ name, config, task, want string }{
		{"a reply", "mock: {replies: [{match: '', output: '" + often + "'}]}", "prompt: hi", single},
		{"a file of a reply", "mock: {replies: [{match: '', files: [{path: f, content: '" + often + "'}]}]}", "prompt: hi", single},
		{"a check", "executor: mock", "prompt: hi, graders: [{type: text, config: {contains: ['" + often + "']}}]", single},
		{
			"an argument of a grader", "executor: mock",
			"prompt: hi, graders: [{type: program, config: {command: 'true', args: ['" + often + "']}}]", single,
		},
		{"prompts together", "executor: mock", "prompt: hi, follow_up_prompts: ['" + strings.Repeat(nearly+"', '", 5) + "']", all},
		{
			"files together", "executor: command, command: ['true']",
			"prompt: hi, files: [" + strings.Repeat("{path: f, content: '"+nearly+"'}, ", 5) + "]", all,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res, _ := runnertest.Run(t, expanding(tt.config, tt.task), record.Request{})
			trial := res.Trial(t, "t", 1)
			require.Equal(t, record.Errored, trial.Verdict)
			require.Contains(t, trial.Error, tt.want)
			require.Empty(t, trial.Attempts, "the next attempt would meet the same")
		})
	}
}

// Problems that are visible in the suite are reported before anything runs.
func TestTextsThatGrowAreFindings(t *testing.T) {
	t.Parallel()
	often := strings.Repeat("{{a}}", 1000)
	r := runnertest.NewRunner(t)
	for name, files := range map[string]map[string]string{
		"prompt":      {"eval.yaml": "tasks: [{id: t, prompt: '" + often + "'}]"},
		"follow-up":   {"eval.yaml": "tasks: [{id: t, prompt: hi, follow_up_prompts: ['" + often + "']}]"},
		"file":        {"eval.yaml": "tasks: [{id: t, prompt: hi, inputs: {files: [{path: f, content: '" + often + "'}]}}]"},
		"prompt file": {"eval.yaml": "tasks: [{id: t, prompt_file: p.md}]", "p.md": often},
		"row":         {"eval.yaml": "tasks_from: rows.csv", "rows.csv": "id,prompt\nt," + often + "\n"},
	} {
		dir := t.TempDir()
		for file, text := range files {
			if file == "eval.yaml" {
				text = "name: s\ninputs: {a: " + strings.Repeat("x", 100<<10) + "}\n" + text + "\n"
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
		}
		_, ds, err := eval.Load(filepath.Join(dir, "eval.yaml"), eval.Options{Vocabulary: r.Planner().Vocabulary()})
		require.NoError(t, err)
		require.Len(t, ds.Errors(), 1, "%s: %v", name, ds)
		require.Equal(t, decode.CodeTooLarge, ds.Errors()[0].Code, name)
		require.Contains(t, ds.Errors()[0].Message, "is longer than 8 MiB", name)
	}
}
