package project_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/files"
	"waza/eval/project"
)

// write creates a project and a directory below it, and returns both paths.
func write(t *testing.T, text string) (root, below string) {
	t.Helper()
	root = t.TempDir()
	below = filepath.Join(root, "a", "b")
	require.NoError(t, os.MkdirAll(below, 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(root, ".git"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, project.Name), []byte(text), 0o644))
	return root, below
}

func find(t *testing.T, text string) (p *project.Project, findings []string) {
	t.Helper()
	_, below := write(t, text)
	p, ds, err := project.Find(below, files.View{})
	require.NoError(t, err)
	for _, d := range ds {
		findings = append(findings, strings.TrimPrefix(d.String(), filepath.ToSlash(filepath.Dir(filepath.Dir(below)))+"/"))
	}
	return p, findings
}

func TestFind(t *testing.T) {
	t.Parallel()
	p, findings := find(t, `
paths: {skills: s, evals: e, results: r}
files: {evalFile: evaluation.yaml, taskGlob: cases/*.yml, taskFileSuffix: .yml}
cache: {enabled: true}
tokens:
  warningThreshold: 400
  fallbackLimit: 900
  limits: {defaults: {"*.md": 5}, overrides: {README.md: 7}}
dev: {model: m, target: high, maxIterations: 3}
defaults: {judgeModel: j}
`)
	require.Empty(t, findings)
	require.Equal(t, project.Paths{Skills: "s", Evals: "e", Results: "r"}, p.Paths)
	require.Equal(t, project.Files{EvalFile: "evaluation.yaml", TaskGlob: "cases/*.yml", TaskFileSuffix: ".yml"}, p.Files)
	require.True(t, p.Cache.Enabled)
	require.Equal(t, project.Dev{Model: "m", Target: "high", MaxIterations: 3}, p.Dev)
	require.Equal(t, project.Tokens{WarningThreshold: 400, FallbackLimit: 900, Limits: &project.TokenLimits{
		Defaults: map[string]int{"*.md": 5}, Overrides: map[string]int{"README.md": 7},
	}}, p.Tokens)
	require.Equal(t, "j", *p.Defaults.JudgeModel)
	require.Equal(t, "r", p.ResultsDir())
}

func TestSnakeCase(t *testing.T) {
	t.Parallel()
	p, _ := find(t, "files: {eval_file: a, task_glob: b, task_file_suffix: c}\ntokens: {warning_threshold: 1, "+
		"fallback_limit: 2}\ndev: {max_iterations: 3}\n")
	require.Equal(t, project.Files{EvalFile: "a", TaskGlob: "b", TaskFileSuffix: "c"}, p.Files)
	require.Equal(t, project.Tokens{WarningThreshold: 1, FallbackLimit: 2}, p.Tokens)
	require.Equal(t, 3, p.Dev.MaxIterations)
}

// Other tools create a file with every key at its default. It gets notes, which runs do not
// print, and no warnings.
func TestFileOfDefaults(t *testing.T) {
	t.Parallel()
	p, findings := find(t, `paths: {skills: skills/, evals: evals/, results: results/}
defaults: {engine: copilot-sdk, model: claude-sonnet-4.6, timeout: 300, parallel: false, workers: 4, verbose: false, sessionLog: false}
cache: {enabled: false, dir: .waza-cache}
server: {port: 3000, resultsDir: results/}
dev: {model: claude-sonnet-4-20250514, target: medium-high, maxIterations: 5}
tokens: {warningThreshold: 500, fallbackLimit: 1000}
graders: {programTimeout: 30}
storage: {provider: azure-blob, enabled: false, containerName: waza-results}
`)
	require.Len(t, findings, 6)
	for _, f := range findings {
		require.Contains(t, f, ": info: ")
		require.Contains(t, f, "has no effect: ")
	}
	require.Empty(t, p.ResultsDir(), "results/ is the default in every such file")
}

func TestKeysWithoutEffect(t *testing.T) {
	t.Parallel()
	_, findings := find(t, "cache: {dir: mine}\nserver: {port: 8080}\ngraders: {programTimeout: 60}\nstorage: "+
		"{enabled: true}\nregistries: [x]\ndefaults: {sessionLog: true}\nsecret: 1\n")
	require.Len(t, findings, 7)
	for i, f := range findings {
		require.Contains(t, f, ": warning: ")
		if i < 6 {
			require.Contains(t, f, "has no effect: ")
		}
	}
	require.Contains(t, findings[6], `unknown key "secret"`)
}

func TestNoProject(t *testing.T) {
	t.Parallel()
	root, below := write(t, "paths: {}\n")
	require.NoError(t, os.Mkdir(filepath.Join(root, "a", ".git"), 0o755))
	p, findings, err := project.Find(below, files.View{})
	require.NoError(t, err)
	require.Nil(t, p, "another repository starts below it")
	require.Empty(t, findings)
	require.Empty(t, p.ResultsDir())

	for _, text := range []string{"", "- a list\n", "paths: [\n"} {
		p, findings := find(t, text)
		require.NotNil(t, p)
		require.Len(t, findings, 1)
	}
}

// Findings name the file relative to the path that the caller gave.
func TestFindingsNameFilesLikeTheCaller(t *testing.T) {
	t.Parallel()
	root, below := write(t, "colour: 1\n")
	_, ds, err := project.Find(below, files.View{})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(root, project.Name), ds[0].File)
}

func FuzzFind(f *testing.F) {
	for _, text := range []string{
		"paths: {skills: s}\n", "storage: {enabled: true}\n", "tokens: {limits: {defaults: {a: 1}}}",
		"a: &a [*a]\n", "cache: {dir: [1]}\nserver: 3\ngraders: ~\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), project.Name)
		p, ds, err := project.Find(filepath.Dir(path), files.View{Overlay: map[string][]byte{path: []byte(text)}})
		require.NoError(t, err)
		require.NotNil(t, p)
		for _, d := range ds {
			require.NotEmpty(t, d.Message)
		}
	})
}
