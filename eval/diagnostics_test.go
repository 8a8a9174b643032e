package eval_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/decode"
)

var update = flag.Bool("update", false, "rewrite the expectations under testdata and the schemas")

// Each file of testdata/diagnostics is a txtar archive: a sentence that describes it, optional
// settings ("load: path", "context_dir: path", "executor: name", "sandbox: MODE or map"), the files of a suite, and the
// expected findings in "want".
func TestDiagnostics(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "diagnostics", "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			got := diagnose(t, archive)
			last := len(archive.Files) - 1
			require.Equal(t, "want", archive.Files[last].Name, "the last file must contain the expected findings")
			if *update {
				archive.Files[last].Data = []byte(got)
				require.NoError(t, os.WriteFile(file, txtar.Format(archive), 0o644))
				return
			}
			require.Equal(t, string(archive.Files[last].Data), got)
		})
	}
}

// diagnose unpacks an archive and returns what Load finds, one finding a line.
func diagnose(t *testing.T, archive *txtar.Archive) string {
	dir := unpack(t, archive)
	settings := map[string]string{"load": "eval.yaml"}
	for line := range strings.Lines(string(archive.Comment)) {
		if key, value, ok := strings.Cut(line, ": "); ok {
			settings[key] = strings.TrimSpace(value)
		}
	}
	o := eval.Options{Vocabulary: vocabulary(), Executor: settings["executor"], Sandbox: settings["sandbox"]}
	if c := settings["context_dir"]; c != "" {
		o.ContextDir = filepath.Join(dir, c)
	}
	if settings["vocabulary"] == "none" {
		o.Vocabulary = nil
	}
	_, diags, err := eval.Load(filepath.Join(dir, settings["load"]), o)
	var b strings.Builder
	if err != nil {
		b.WriteString("error: " + err.Error() + "\n")
	}
	for _, d := range diags {
		b.WriteString(d.String() + "\n")
	}
	if len(diags) == 0 && err == nil {
		b.WriteString("nothing\n")
	}
	wd, err := os.Getwd()
	require.NoError(t, err)
	return strings.NewReplacer(dir+string(filepath.Separator), "", wd, "$PWD").Replace(b.String())
}

// unpack writes the files of an archive, except "want", below a directory of its own. A file "x
// -> y" is a link.
func unpack(t *testing.T, archive *txtar.Archive) string {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, f := range archive.Files {
		if f.Name == "want" {
			continue
		}
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

// TestEveryCodeHasAFixture checks that the table of codes and the fixtures agree.
func TestEveryCodeHasAFixture(t *testing.T) {
	t.Parallel()
	shown := map[string]bool{}
	files, err := filepath.Glob(filepath.Join("testdata", "diagnostics", "*.txtar"))
	require.NoError(t, err)
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(archive.Files[len(archive.Files)-1].Data)) {
			if i := strings.LastIndex(line, "["); i >= 0 {
				shown[strings.TrimRight(line[i+1:], "]\n")] = true
			}
		}
	}
	shown[string(decode.CodeTooLarge)] = true // by TestHugeFilesAreRefused
	shown[string(decode.CodeFleet)] = true    // by TestFleetPreflight of package plan, which imports the fleet
	seen := map[decode.Code]bool{}
	for _, c := range decode.Codes() {
		require.False(t, seen[c.Code], "%s is listed twice", c.Code)
		seen[c.Code] = true
		require.True(t, strings.HasSuffix(c.Doc, "."), "%s: %q is not a sentence", c.Code, c.Doc)
		require.True(t, shown[string(c.Code)], "no fixture shows %s", c.Code)
		delete(shown, string(c.Code))
	}
	require.Empty(t, shown, "fixtures show codes that Codes does not list")
}
