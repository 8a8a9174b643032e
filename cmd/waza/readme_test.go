package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"waza/cmd/waza/config"
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

// fenced returns the blocks of a document in a language that begin with a text.
func fenced(t *testing.T, document, language, begin string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(document)))
	require.NoError(t, err)
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		if strings.HasPrefix(m[1], begin) {
			blocks = append(blocks, m[1])
		}
	}
	return blocks
}

func TestServeExamples(t *testing.T) {
	t.Parallel()
	const command = "$ waza serve --check\n"
	examples := fenced(t, "docs/serve.md", "console", command)
	require.Len(t, examples, 1)
	out, code := waza(t, environment(t), "serve", "--check")
	require.Equal(t, exit.Passed, code)
	require.Equal(t, strings.TrimPrefix(examples[0], command), out)

	examples = append(fenced(t, "docs/serve.md", "yaml", "agents:"), fenced(t, "docs/configuration.md", "yaml", "agents:")...)
	require.Len(t, examples, 2)
	for _, example := range examples {
		file := filepath.Join(t.TempDir(), "waza.yaml")
		require.NoError(t, os.WriteFile(file, []byte(example), 0o600))
		_, findings := config.Load(config.Options{File: file})
		for _, d := range findings {
			require.Contains(t, d.Message, "no such file or directory", "an example has a mistake")
		}
	}
}

// Two suites of docs/kinds.md were no YAML: a question mark ends a plain text within braces.
func TestExamplesAreYAML(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	require.NoError(t, err)
	blocks := 0
	for _, page := range append([]string{"README.md"}, pages...) {
		for _, block := range fenced(t, strings.TrimPrefix(filepath.ToSlash(page), "../../"), "yaml", "") {
			var v any
			require.NoError(t, yaml.Unmarshal([]byte(block), &v), "%s:\n%s", page, block)
			blocks++
		}
	}
	require.Greater(t, blocks, 10)
}
