package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/runnertest"
)

// times matches the parts of the output that differ between runs.
var times = regexp.MustCompile(`\b\d+(\.\d+)? (ms|s)\b`)

// The tuning kinds work from the terminal, with a model whose answers depend on temperature and
// system prompt. Scores are shares: with 0.2 both tasks pass, with 1 one of two.
func TestTuningsFromTheTerminal(t *testing.T) {
	t.Parallel()
	model := runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		switch {
		case len(a.Tools) > 0:
			return runnertest.Answer{Tool: "submit_prompts", Arguments: map[string]any{"prompts": []any{
				map[string]any{"style": "terse", "prompt": "Be brief."}, map[string]any{"style": "rules", "prompt": "Answer with yes.\nNever with no."},
			}}}
		case strings.Contains(a.System, "yes"), a.Temperature != nil && *a.Temperature < 0.5, a.Prompt == "Easy?" && a.Temperature != nil:
			return runnertest.Answer{Text: "yes", InputTokens: 10, OutputTokens: 1}
		}
		return runnertest.Answer{Text: "no", InputTokens: 10, OutputTokens: 1}
	})
	suite := func(kind, config string) string {
		return fmt.Sprintf(`name: demo
kind: %s
config:
  executor: openai
  model: m
  base_url: %s
  api_key_command: echo key
%s
tasks:
  - {id: easy, prompt: "Easy?", graders: [{name: says, type: text, config: {contains: [yes]}}]}
  - {id: hard, prompt: "Hard?", graders: [{name: says, type: text, config: {contains: [yes]}}]}
`, kind, model.URL, config)
	}
	for _, c := range []struct{ kind, config, want string }{
		{"param_tune", "  matrix: {temperature: [1, 0.2]}\n  trials_per_task: 10", `
Cell             Passed  Trials  Pass rate  95 % interval  Score  Median time  Tokens
temperature=1    1/2     10/20   50 %       27–73 %        0.50   T           220
temperature=0.2  2/2     20/20   100 %      83–100 %       1.00   T           220
Best cell: temperature=0.2
Score 1.00, 95 % interval 0.80–1.00, shrunk because it is the best of 2 cells; its trials score 1.00, and no fresh trials confirm it
`},
		{"param_tune", "  matrix: {temperature: [1, 0.2]}", `
Best cell: temperature=0.2
Score 0.75, 95 % interval 0.11–1.00, shrunk because it is the best of 2 cells; its trials score 1.00, and no fresh trials confirm it
Possibly as good (not separated by these trials): temperature=1
`},
		{"prompt_tune", "  matrix: {system_prompt: [You help.]}\n  prompt_tune: {generations: 1, prompts: 2}\n  trials_per_task: 10", `
Best cell: system_prompt=generation 1, prompt 2
Score 1.00, 95 % interval 0.78–1.00, shrunk because it is the best of 3 cells; its trials score 1.00, and no fresh trials confirm it
  Answer with yes.
  Never with no.
`},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "eval.yaml"), []byte(suite(c.kind, c.config)), 0o600))
			run := exec.CommandContext(t.Context(), wazaPath(t), "run", "eval.yaml")
			run.Dir, run.Env = dir, environment(t, "COLUMNS=120")
			out, err := run.CombinedOutput()
			var exit *exec.ExitError
			if err != nil {
				require.ErrorAs(t, err, &exit)
				require.Equal(t, 1, exit.ExitCode(), "%s", out) // some tasks failed
			}
			text := times.ReplaceAllString(string(out), "T")
			text = regexp.MustCompile(`T +`).ReplaceAllString(text, "T           ")
			require.Contains(t, text, strings.TrimPrefix(c.want, "\n"), "%s", out)
		})
	}
	t.Cleanup(func() {
		// The parameters have reached the model.
		require.True(t, slices.ContainsFunc(model.Requests(),
			func(a runnertest.Asked) bool { return a.Temperature != nil && *a.Temperature == 0.2 }))
		require.True(t, slices.ContainsFunc(model.Requests(), func(a runnertest.Asked) bool { return a.System == "Be brief." }))
	})
}
