package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
)

// The example of stopping in README matched no threshold.
func TestReadmeExampleOfStopping(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(readme), "## Fewer trials")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	require.Contains(t, section, "50 trials and\n`pass_threshold: 0.8`")

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "eval.yaml"), []byte(`
name: fewer
config: {trials_per_task: 50, stopping: true, mock: {replies: [{output: fine}]}}
pass_threshold: 0.8
tasks:
  - {id: easy, prompt: x, graders: [{type: text, config: {contains: [fine]}}]}
  - {id: hard, prompt: x, graders: [{type: text, config: {contains: [better]}}]}
`), 0o600))
	out, code := waza(t, environment(t), "run", dir)
	require.Equal(t, exit.Failed, code)
	untimed := func(table string) string {
		return regexp.MustCompile(`(?m)  [^ ]+ m?s$`).ReplaceAllString(table, "  TIME")
	}
	_, example, _ := strings.Cut(section, "```\n")
	example, _, _ = strings.Cut(example, "```")
	require.Contains(t, untimed(out), untimed(example))
}
