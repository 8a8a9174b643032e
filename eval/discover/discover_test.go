package discover_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/discover"
	"waza/eval/files"
)

func search(t *testing.T, dir string) (paths []string, problems []string) {
	t.Helper()
	found, err := discover.Suites(dir, files.View{})
	require.NoError(t, err)
	for _, s := range found.Suites {
		rel, err := filepath.Rel(dir, s.Path)
		require.NoError(t, err)
		paths = append(paths, rel)
	}
	for _, d := range found.Problems {
		rel, err := filepath.Rel(dir, d.File)
		require.NoError(t, err)
		problems = append(problems, rel+" "+string(d.Code))
	}
	return paths, problems
}

func TestDiscoverNames(t *testing.T) {
	t.Parallel()
	dir := unpack(t, txtar.Parse([]byte(`
-- eval.yaml --
name: x
-- a/eval.yml --
name: x
-- a/eval.smoke.yaml --
name: x
-- a/eval-nightly.yml --
name: x
-- .github/evals/demo.eval.yaml --
name: x
-- a/evaluation.yaml --
name: x
-- a/my-eval.yaml --
name: x
-- a/eval.yaml.bak --
name: x
-- a/eval.yaml/README --
a directory of that name
-- node_modules/p/eval.yaml --
name: x
-- vendor/p/eval.yaml --
name: x
-- .git/eval.yaml --
name: x
`)))
	paths, problems := search(t, dir)
	require.Equal(t, []string{".github/evals/demo.eval.yaml", "a/eval-nightly.yml", "a/eval.smoke.yaml", "a/eval.yml", "eval.yaml"}, paths)
	require.Empty(t, problems)
}

func TestDiscoverSummaries(t *testing.T) {
	t.Parallel()
	dir := unpack(t, txtar.Parse([]byte("-- eval.yaml --\nname: x\nskill: s\nversion: 1.0\ndescription: |\n  "+
		"about\nconfig: {executor: acp, anything: [}]\n")))
	found, err := discover.Suites(dir, files.View{})
	require.NoError(t, err)
	require.Empty(t, found.Suites)
	require.Equal(t, decode.CodeSyntax, found.Problems[0].Code)

	dir = unpack(t, txtar.Parse([]byte("-- eval.yaml --\nname: x\nskill: s\nversion: 1.0\ndescription: |\n  "+
		"about\nconfig: {executor: acp, anything: []}\ntasks: 3\n")))
	found, err = discover.Suites(dir, files.View{})
	require.NoError(t, err)
	require.Empty(t, found.Problems)
	require.Empty(t, cmp.Diff([]discover.Summary{
		{Path: filepath.Join(dir, "eval.yaml"), Name: "x", Skill: "s", Version: "1.0", Description: "about", Executor: "acp"},
	},
		found.Suites))
}

func TestDiscoverProblems(t *testing.T) {
	t.Parallel()
	dir := unpack(t, txtar.Parse([]byte(`
-- a/eval.yaml --
name: [
-- b/eval.yaml --
- a list
-- c/eval.yaml --
defaults: {agent: x}
instruction: y
-- d/eval.yaml --
skill: no name
-- e/eval.yaml --
-- f/eval.yaml --
name: fine
-- g/eval.yaml -> nowhere --
`)))
	paths, problems := search(t, dir)
	require.Equal(t, []string{"d/eval.yaml", "f/eval.yaml"}, paths)
	require.Equal(t, []string{
		"a/eval.yaml syntax", "b/eval.yaml wrong-type", "c/eval.yaml other-dialect", "d/eval.yaml missing-field",
		"e/eval.yaml empty-document", "g/eval.yaml missing-file",
	},
		problems)
}

func TestDiscoverUnreadableDirectory(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root reads everything")
	}
	dir := unpack(t, txtar.Parse([]byte("-- a/eval.yaml --\nname: x\n-- b/eval.yaml --\nname: x\n")))
	require.NoError(t, os.Chmod(filepath.Join(dir, "a"), 0))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "a"), 0o755) })
	paths, problems := search(t, dir)
	require.Equal(t, []string{"b/eval.yaml"}, paths)
	require.Equal(t, []string{"a unreadable-file"}, problems)
}

// Neither Suites nor patterns follow links that form cycles.
func TestCyclicLinks(t *testing.T) {
	t.Parallel()
	dir := unpack(t, txtar.Parse([]byte("-- eval.yaml --\nname: x\ntasks: ['**/*.yaml']\n-- tasks/a.yaml "+
		"--\nprompt: hi\n-- tasks/up -> .. --\n-- loop -> loop --\n-- eval.x.yaml -> eval.x.yaml --\n")))
	paths, problems := search(t, dir)
	require.Equal(t, []string{"eval.yaml"}, paths)
	require.Equal(t, []string{"eval.x.yaml unreadable-file"}, problems)
	s, _, err := eval.Load(filepath.Join(dir, "eval.yaml"), eval.Options{})
	require.NoError(t, err)
	require.Len(t, s.Tasks, 1)
	_, _, err = eval.Load(filepath.Join(dir, "loop"), eval.Options{})
	require.Error(t, err)
}

func TestDiscoverIgnored(t *testing.T) {
	t.Parallel()
	const eval = "/eval.yaml --\nname: x\n-- "
	dir := unpack(t, txtar.Parse([]byte(`
-- .git/HEAD --
-- .gitignore --
# comment
build/
/top
*.tmp
!keep.tmp
deep/**/gone
a/b
\#odd
eval.local.yaml
-- build`+eval+"sub/build"+eval+"top"+eval+"sub/top"+eval+"x.tmp"+eval+"keep.tmp"+eval+"deep/gone"+eval+"deep/1/2/gone"+
		eval+"a/b"+eval+"c/a/b"+eval+"#odd"+eval+
		"sub/inner"+eval+"sub/inner/eval.local.yaml --\nname: x\n-- sub/.gitignore --\ninner\n!build/\n-- brace{1}"+eval+"README --\n")))
	paths, problems := search(t, dir)
	require.Equal(t, []string{"brace{1}/eval.yaml", "c/a/b/eval.yaml", "keep.tmp/eval.yaml", "sub/build/eval.yaml", "sub/top/eval.yaml"},
		paths)
	require.Empty(t, problems)

	// Patterns of the directories above count, too.
	paths, _ = search(t, filepath.Join(dir, "c"))
	require.Equal(t, []string{"a/b/eval.yaml"}, paths)
	paths, _ = search(t, filepath.Join(dir, "deep"))
	require.Empty(t, paths)
}

func TestDiscoverErrors(t *testing.T) {
	t.Parallel()
	dir := unpack(t, txtar.Parse([]byte("-- file --\n")))
	var notFound *discover.NotFoundError
	_, err := discover.Suites(filepath.Join(dir, "lost"), files.View{})
	require.ErrorAs(t, err, &notFound)
	_, err = discover.Suites(filepath.Join(dir, "file"), files.View{})
	require.ErrorContains(t, err, "not a directory")
}

// A workflow that runs suites is usually called eval.yml. It used to be listed among the suites,
// or reported with errors, and a directory of one suite and one workflow was ambiguous.
func TestWorkflowsAreNotSuites(t *testing.T) {
	t.Parallel()
	const workflow = "name: Eval\non:\n  pull_request:\njobs:\n  eval:\n    runs-on: ubuntu-latest\n    steps: [{run: waza run}]\n"
	dir := unpack(t, txtar.Parse([]byte(`
-- .github/workflows/eval.yml --
`+workflow+`
-- .github/workflows/nightly.eval.yaml --
: this is not even YAML [
-- .forgejo/workflows/eval.yml --
`+workflow+`
-- .github/evals/eval.yaml --
name: x
-- templates/eval.yml --
`+workflow+`
-- templates/flow.eval.yml --
{name: Eval, "on": push, "jobs": {}}
-- both/eval.yml --
`+workflow+`
-- both/eval.yaml --
name: x
tasks: []
-- both/tasks/a.yaml --
prompt: hi
-- odd/eval.yaml --
name: x
on: {}
jobs: {}
tasks: []
`)))
	paths, problems := search(t, dir)
	require.Equal(t, []string{".github/evals/eval.yaml", "both/eval.yaml", "odd/eval.yaml"}, paths)
	require.Empty(t, problems)
	paths, problems = search(t, filepath.Join(dir, ".github", "workflows"))
	require.Empty(t, paths)
	require.Empty(t, problems)

	found, err := discover.Find(filepath.Join(dir, "both"), files.View{})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "both", "eval.yaml"), found)
	require.Equal(t, []string{found}, discover.Above(filepath.Join(dir, "both", "tasks", "a.yaml"), files.View{}))
	var ambiguous *discover.AmbiguousError
	_, err = discover.Find(filepath.Join(dir, "templates"), files.View{})
	require.ErrorAs(t, err, &ambiguous)
	require.Empty(t, ambiguous.Suites)

	for path, want := range map[string]bool{
		"eval.yml": true, "a/eval.yml": true, ".github/evals/eval.yml": true, ".github/workflows/eval.yml": false,
		"/r/.github/workflows/eval.yml": false, ".gitea/workflows/sub/eval.yml": false, "github/workflows/eval.yml": true,
	} {
		require.Equal(t, want, discover.IsSuite(path), path)
	}
}

// unpack writes an archive to a directory; "name -> target" is a link.
func unpack(t *testing.T, archive *txtar.Archive) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, f := range archive.Files {
		name, target, link := strings.Cut(f.Name, " -> ")
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if link {
			require.NoError(t, os.Symlink(target, path))
			continue
		}
		require.NoError(t, os.WriteFile(path, f.Data, 0o644))
	}
	return dir
}

// Projects of Vally choose the names of evals. Files with such names that are no evals need no message.
func TestDiscoverNamesOfVally(t *testing.T) {
	t.Parallel()
	dir := unpack(t, txtar.Parse([]byte(`
-- .git/HEAD --
-- .vally.yaml --
paths: {evalFilenames: ["*.vally.yaml", "cases.{yaml,yml}", "[", "*.txt"]}
-- a/eval.vally.yaml --
stimuli: []
-- a/broken.vally.yaml --
stimuli: [
-- a/deployment.vally.yaml --
kind: Deployment
---
kind: Service
-- a/b/cases.yml --
stimuli: []
-- a/b/cases.txt --
stimuli: []
-- nested/.vally.yaml --
paths: {evalFilenames: other.yaml}
-- nested/other.yaml --
stimuli: []
-- nested/a.vally.yaml --
stimuli: []
-- none/.vally.yaml --
[
-- none/a.vally.yaml --
stimuli: []
`)))
	paths, problems := search(t, dir)
	require.Equal(t, []string{"a/b/cases.yml", "a/eval.vally.yaml", "nested/other.yaml"}, paths)
	require.Empty(t, problems)
	path, err := discover.Find(filepath.Join(dir, "a", "b"), files.View{})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "a", "b", "cases.yml"), path)
	require.True(t, discover.IsSuiteIn(filepath.Join(dir, "nested", "other.yaml"), files.View{}))
	require.False(t, discover.IsSuiteIn(filepath.Join(dir, "nested", "more.yaml"), files.View{}))
}

// An experiment beside the evals that it repeats does not make their directory ambiguous.
func TestFindBesideExperiment(t *testing.T) {
	t.Parallel()
	dir := unpack(t, txtar.Parse([]byte("-- eval.yaml --\nstimuli: []\n-- experiment.yaml --\nevals: [eval.yaml]\n")))
	path, err := discover.Find(dir, files.View{})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "eval.yaml"), path)
	require.NoError(t, os.Remove(path))
	path, err = discover.Find(dir, files.View{})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "experiment.yaml"), path)
}
