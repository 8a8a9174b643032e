package docs_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"waza/cmd/waza/config"
	"waza/runner/proc/proctest"
	"waza/runner/record"
)

// fenced returns the blocks of a document in a language that start with a text.
func fenced(t *testing.T, document, language, begin string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(document))
	require.NoError(t, err)
	for _, b := range codeBlocks(string(text)) {
		if b.language == language && strings.HasPrefix(b.text, begin) {
			blocks = append(blocks, b.text)
		}
	}
	return blocks
}

// The configurations of the pages have no mistakes, except that their files do not exist.
func TestServeExamples(t *testing.T) {
	t.Parallel()
	examples := append(fenced(t, "serve.md", "yaml", "# public.yaml\nagents:"),
		fenced(t, "configuration.md", "yaml", "# serve.yaml\nagents:")...)
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

// Two suites of docs/kinds.md were not valid YAML: a question mark ends a plain scalar in
// braces.
func TestExamplesAreYAML(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("*.md")
	require.NoError(t, err)
	blocks := 0
	for _, page := range append([]string{"../README.md"}, pages...) {
		for _, block := range fenced(t, page, "yaml", "") {
			var v any
			require.NoError(t, yaml.Unmarshal([]byte(block), &v), "%s:\n%s", page, block)
			blocks++
		}
	}
	require.Greater(t, blocks, 10)
}

// The second description of docs/examples/routing is better than the first.
func TestRoutingExample(t *testing.T) {
	t.Parallel()
	out, code := waza(t, proctest.Environment(t), "run", filepath.Join("examples", "routing"), "--json")
	require.Equal(t, 1, code)
	var res struct{ Summary record.Summary }
	require.NoError(t, json.Unmarshal([]byte(out), &res))
	require.Len(t, res.Summary.Groups, 2)
	short, long := res.Summary.Groups[0].Routing, res.Summary.Groups[1].Routing
	require.Equal(t, []float64{0.4, 0.25, 1, 1}, []float64{*short.Accuracy, *short.Recall, *long.Accuracy, *long.Recall})
	require.Equal(t, res.Summary.Groups[1].Group, res.Summary.Tune.Best)
	require.Len(t, res.Summary.Routing.Misroutes, 3)
}
