package plugineval_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/dialecttest"
	"waza/eval/discover"
	"waza/eval/files"
)

// isSuite reports whether a file is a manifest with cases. Plugins in others/ have none.
func isSuite(path string) bool {
	return filepath.Base(path) == "plugin.json" && !strings.Contains(filepath.ToSlash(path), "/others/")
}

func TestSuites(t *testing.T) {
	t.Parallel()
	dialecttest.Run(t, "plugineval", isSuite)
}

// A manifest without cases is no suite, and neither are other files with a name.
func TestOtherFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "cases/evals/a/prompt.md", "x")
	write(t, dir, "cases/plugin.json", `{"name": "cases"}`)
	write(t, dir, "both/evals/a/prompt.md", "x")
	write(t, dir, "both/plugin.json", `{"name": "both"}`)
	write(t, dir, "both/.claude-plugin/plugin.json", `{"name": "both"}`)
	write(t, dir, "none/.claude-plugin/plugin.json", `{"name": "none"}`)
	write(t, dir, "none/evals/README.md", "x")
	write(t, dir, "cases/eval.yaml", "name: cases\n")
	for file, want := range map[string]bool{
		"cases/plugin.json": true, "both/.claude-plugin/plugin.json": true,
		"both/plugin.json": false, "none/.claude-plugin/plugin.json": false, "cases/eval.yaml": false,
	} {
		suite, _, err := eval.Load(filepath.Join(dir, file), eval.Options{})
		require.NoError(t, err)
		require.Equal(t, want, suite != nil && suite.Format == "plugin-evals", file)
	}
}

func write(t testing.TB, dir, name, content string) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

// No text of a case makes the loader fail, and each case is one task.
func FuzzCase(f *testing.F) {
	f.Add("---\nruns: 1\ntags: [a]\n---\nDo it.", "schema_version: '1.1'\nname: a\ngraders: [{name: g, type: llm, criteria: c}]", "---\ntype: regex\nmatch: count:2\n---\na", "---\nerror: true\n---\n{{file:x}}{{input.y}}")
	f.Add("---\nplugins: [../.., ../../..]\nmodel: a\n---\na", "context: {add_dirs: [graders, ..]}", "---\ntype: llm\nfocus: mock_calls\n---\nb", "x")
	f.Add("---\nplugins: [/]\n---\na", "", "---\ntype: regex\ntarget: trace\narm: with-only\n---\nb", "")
	f.Add("---\n---", "execution: {prompt: a, env: {EVAL_A: b}}\ncontext: {scaffold_script: ../../../../../etc/passwd}", "---\ntype: tool_order\nbefore: {tool: A}\nafter: B\n---", "")
	f.Add("---\n&a a: *a\n", "[", "---\ntype: baseline\nbaseline_file: ../prompt.md\n---", "{{")
	f.Fuzz(func(t *testing.T, prompt, caseYAML, grader, mock string) {
		dir := t.TempDir()
		write(t, dir, ".claude-plugin/plugin.json", `{"name": "p"}`)
		write(t, dir, "evals/a/prompt.md", prompt)
		write(t, dir, "evals/a/case.yaml", caseYAML)
		write(t, dir, "evals/a/graders/g.md", grader)
		write(t, dir, "evals/mocks/s/t.md", mock)
		suite, found, err := eval.Load(filepath.Join(dir, ".claude-plugin", "plugin.json"), eval.Options{View: files.View{}})
		require.NoError(t, err)
		if suite != nil && !found.HasErrors() {
			require.Len(t, suite.Tasks, 1)
			_, err := suite.Node()
			require.NoError(t, err)
		}
	})
}

// A file of a case belongs to the suite of its plugin.
func TestFilesOfCases(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, ".claude-plugin/plugin.json", `{"name": "p"}`)
	write(t, dir, "evals/a/prompt.md", "x")
	manifest := filepath.Join(dir, ".claude-plugin", "plugin.json")
	require.Equal(t, []string{manifest}, discover.Above(filepath.Join(dir, "evals", "a", "prompt.md"), files.View{}))
	found, err := discover.Find(dir, files.View{})
	require.NoError(t, err)
	require.Equal(t, manifest, found)
}

// Cases that a search leaves out are reported: those in linked folders, and those beyond the limits.
func TestSkippedCases(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, ".claude-plugin/plugin.json", `{"name": "p"}`)
	write(t, dir, "evals/a/prompt.md", "x")
	write(t, dir, "other/prompt.md", "x")
	write(t, dir, "evals/"+strings.Repeat("d/", 60)+"prompt.md", "x")
	require.NoError(t, os.Symlink(filepath.Join("..", "other"), filepath.Join(dir, "evals", "linked")))
	require.NoError(t, os.Symlink(filepath.Join("a", "prompt.md"), filepath.Join(dir, "evals", "file.md")))
	_, found, err := eval.Load(filepath.Join(dir, ".claude-plugin", "plugin.json"), eval.Options{})
	require.NoError(t, err)
	var messages []string
	for _, f := range found {
		messages = append(messages, f.Message)
	}
	all := strings.Join(messages, "\n")
	require.Contains(t, all, "cases in the linked folder "+filepath.Join(dir, "evals", "linked")+" are not run")
	require.NotContains(t, all, "file.md")
	require.Contains(t, all, "too many cases")
}
