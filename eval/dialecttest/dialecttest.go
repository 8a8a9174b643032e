// Package dialecttest tests the translations of a dialect with the archives of testdata/dialects.
package dialecttest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/dialect"
	"waza/eval/dialect/builtin"
	"waza/eval/files"
)

var update = flag.Bool("update", false, "write the expected texts of testdata/dialects")

// wantFile is the file of an archive with the expected descriptions of its suites.
const wantFile = "want"

// Run tests all archives of testdata/dialects/FORMAT. An archive contains suites, which are the files
// whose slash-separated paths isSuite accepts, other files, and the file want: for each suite its head,
// tasks and findings. Places in want below the archive's directory start with ROOT.
//
// Each translation without errors, written as an eval.yaml, must have the same tasks.
// The option -update writes the files want.
func Run(t *testing.T, format string, isSuite func(path string) bool) {
	t.Helper()
	for _, file := range archives(t, format) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			runArchive(t, file, isSuite)
		})
	}
}

// Seed adds the suites of all archives of testdata/dialects/FORMAT to the corpus of a fuzz test.
func Seed(f *testing.F, format string, isSuite func(path string) bool) {
	f.Helper()
	for _, file := range archives(f, format) {
		archive, err := txtar.ParseFile(file)
		require.NoError(f, err)
		for _, a := range archive.Files {
			if isSuite(a.Name) {
				f.Add(a.Data)
			}
		}
	}
}

// Fuzz fuzzes the content of the suite file at a path relative to a directory, beside files with a fixed
// content. No content makes the loader fail, and a suite without errors has something to run and can be
// written as an eval.yaml and in each format that waza writes. Without other files, it has no more tasks than its file has bytes.
func Fuzz(f *testing.F, name string, beside ...map[string]string) {
	f.Helper()
	path := filepath.Join(f.TempDir(), name)
	require.NoError(f, os.MkdirAll(filepath.Dir(path), 0o755))
	for _, others := range beside {
		for other, content := range others {
			require.NoError(f, os.WriteFile(filepath.Join(filepath.Dir(path), other), []byte(content), 0o600))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		suite, found, err := eval.Load(path, eval.Options{View: files.View{Overlay: map[string][]byte{path: data}}})
		require.NoError(t, err)
		if suite == nil {
			require.True(t, found.HasErrors(), "neither a suite nor an error")
			return
		}
		if suite.Format == "" || found.HasErrors() {
			return
		}
		require.True(t, len(suite.Tasks) > 0 || suite.Triggers != nil, "nothing to run, and no error")
		if len(beside) == 0 {
			require.LessOrEqual(t, len(suite.Tasks), len(data), "more tasks than bytes")
		}
		root, err := suite.Node()
		require.NoError(t, err)
		_, err = dialect.Encode(root)
		require.NoError(t, err)
		for _, d := range builtin.All() {
			if d.Write != nil {
				_, err := d.Write(suite.Document(filepath.Join(filepath.Dir(path), "written")))
				require.NoError(t, err)
			}
		}
	})
}

// Shared loads suites by other authors, which are beside the checkout or skip the test: they have no
// errors, and each task has a prompt, and graders unless it is blocked.
func Shared(t *testing.T, format string, patterns ...string) {
	t.Helper()
	var found []string
	for _, pattern := range patterns {
		more, err := filepath.Glob(filepath.FromSlash("../../../../shared/suites/formats/" + pattern))
		require.NoError(t, err)
		found = append(found, more...)
	}
	if len(found) == 0 {
		t.Skip("no shared suites beside the checkout")
	}
	for _, original := range found {
		path := copied(t, original)
		suite, diags, err := eval.Load(path, eval.Options{})
		require.NoError(t, err)
		require.Empty(t, diags.Errors(), path)
		require.Equal(t, format, suite.Format)
		require.NotEmpty(t, suite.Tasks, path)
		for _, task := range suite.Tasks {
			require.NotEmpty(t, task.Inputs.Prompt, path)
			require.True(t, len(task.Effective) > 0 || task.Blocked != "", path)
		}
		require.NotContains(t, requireSameWhenWritten(t, suite), "error: ", path)
	}
}

// copied returns the path of a shared suite in a copy of its folder of formats.
func copied(t *testing.T, path string) string {
	t.Helper()
	_, rest, _ := strings.Cut(filepath.ToSlash(path), "/suites/formats/")
	name, inside, _ := strings.Cut(rest, "/")
	dir := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.FromSlash(strings.TrimSuffix(filepath.ToSlash(path), "/"+inside)))))
	return filepath.Join(dir, filepath.FromSlash(inside))
}

// archives returns the archives of a format, seen from a package of a dialect.
func archives(t testing.TB, format string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("..", "..", "..", "testdata", "dialects", format, "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, found)
	return found
}

func runArchive(t *testing.T, file string, isSuite func(path string) bool) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	require.NoError(t, err)
	outside := t.TempDir()
	dir := filepath.Join(outside, "a", "b")
	var suites []string
	var sources []txtar.File
	want := ""
	for _, f := range archive.Files {
		if f.Name == wantFile {
			want = string(f.Data)
			continue
		}
		sources = append(sources, f)
		if isSuite(f.Name) {
			suites = append(suites, f.Name)
		}
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, f.Data, 0o600))
	}
	require.NotEmpty(t, suites, "%s contains no suite", file)
	places := strings.NewReplacer(filepath.ToSlash(dir), "ROOT", filepath.ToSlash(outside), "OUTSIDE")
	var got strings.Builder
	for _, s := range suites {
		fmt.Fprintf(&got, "# %s\n%s", s, places.Replace(load(t, filepath.Join(dir, filepath.FromSlash(s)))))
	}
	if *update {
		archive.Files = slices.Concat(sources, []txtar.File{{Name: wantFile, Data: []byte(got.String())}})
		require.NoError(t, os.WriteFile(file, txtar.Format(archive), 0o600))
		return
	}
	require.Equal(t, want, got.String())
}

// load describes a suite and its findings.
func load(t *testing.T, path string) string {
	t.Helper()
	suite, found, err := eval.Load(path, eval.Options{})
	require.NoError(t, err)
	var b strings.Builder
	if suite != nil {
		tasks := Describe(t, suite)
		b.WriteString(tasks)
		if !found.HasErrors() {
			requireSameWhenTranslated(t, suite, tasks)
			b.WriteString(requireSameWhenWritten(t, suite))
		}
	}
	for _, d := range found {
		fmt.Fprintf(&b, "%d:%d: %s: %s\n", d.Line, d.Column, d.Severity, d.Message)
	}
	return b.String()
}

// requireSameWhenTranslated writes a suite as an eval.yaml beside it, which must have the same tasks.
func requireSameWhenTranslated(t *testing.T, suite *eval.Suite, tasks string) {
	t.Helper()
	root, err := suite.Node()
	require.NoError(t, err)
	data, err := dialect.Encode(root)
	require.NoError(t, err)
	other := filepath.Join(filepath.Dir(suite.File), "translated.yaml")
	require.NoError(t, os.WriteFile(other, data, 0o600))
	again, faults, err := eval.Load(other, eval.Options{})
	require.NoError(t, err)
	require.Empty(t, faults.Errors(), "%s", data)
	require.Equal(t, tasks, Describe(t, again), "%s", data)
	require.NoError(t, os.Remove(other))
}
