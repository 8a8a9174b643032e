package eval_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/files"
)

// Looked gets every path that a suite depends on: files that were read, and the places where
// files were looked for in vain.
func TestLooked(t *testing.T) {
	t.Parallel()
	const text = `
-- .git/HEAD --
-- .waza.yaml --
defaults: {model: m}
-- evals/eval.yaml --
name: looked
skill: helper
config: {instruction_files: [rules.md, missing.md], skill_directories: [skills]}
tasks: ["tasks/**/*.yaml", one.yaml]
tasks_from: rows.csv
-- evals/tasks/deep/a.yaml --
id: a
prompt_file: ask.md
files: [in.txt]
-- evals/tasks/deep/ask.md --
Ask.
-- evals/one.yaml --
{id: one, prompt: x}
-- evals/rows.csv --
prompt
x
-- evals/rules.md --
x
-- evals/fixtures/in.txt --
x
-- evals/skills/helper/SKILL.md --
x
`
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(text)).Files {
		path := filepath.Join(dir, f.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, f.Data, 0o644))
	}
	look := func() map[string]bool {
		looked := map[string]bool{}
		_, _, err := eval.Load(filepath.Join(dir, "evals"), eval.Options{View: files.View{Accessed: func(path string) {
			require.True(t, filepath.IsAbs(path), path)
			rel, err := filepath.Rel(dir, path)
			require.NoError(t, err)
			looked[rel] = true
		}}})
		require.NoError(t, err)
		return looked
	}
	looked := look()
	for _, path := range strings.Fields(`.waza.yaml evals/.waza.yaml evals/eval.yaml evals/tasks evals/tasks/deep evals/tasks/deep/a.yaml
		evals/tasks/deep/ask.md evals/one.yaml evals/rows.csv evals/rules.md evals/missing.md missing.md evals/fixtures/missing.md
		evals/fixtures/in.txt evals/skills evals/skills/helper/SKILL.md evals/trigger_tests.yaml`) {
		require.True(t, looked[path], "%s is not among %v", path, looked)
	}

	// This also holds for a file that is not a valid suite.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "evals/eval.yaml"), []byte("tasks: ["), 0o644))
	require.True(t, look()["evals/eval.yaml"])
}
