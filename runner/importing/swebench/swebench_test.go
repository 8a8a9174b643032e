package swebench_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/importing/internal/sourcetest"
	"waza/runner/importing/source"
	"waza/runner/importing/swebench"
)

func TestOutlines(t *testing.T) {
	t.Parallel()
	sourcetest.Outlines(t, swebench.Format, "testdata/*.json")
}

// A folder of reports is one run.
func TestFolder(t *testing.T) {
	t.Parallel()
	dir := "testdata/logs/run_evaluation/run1/openai__gpt-5"
	require.True(t, swebench.Format.Recognizes(source.ReadHead(dir)))
	require.False(t, swebench.Format.Recognizes(source.ReadHead("testdata")))
	sourcetest.Outline(t, swebench.Format, dir, "testdata/folder.want")
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"total_instances":3,"resolved_instances":1}`:      `: the report has counts but no ids of instances`,
		`{"resolved_ids":["a"],"unresolved_ids":["a"]}`:     `: the instance "a" is both resolved and not resolved`,
		`{"resolved_ids":["a"],"empty_patch_ids":["a"]}`:    `: the instance "a" is both resolved and not resolved`,
		`{"resolved_ids":["a"],"error_ids":["a"]}`:          `: the instance "a" is both resolved and in error`,
		`{"resolved_ids":["a","b"],"resolved_instances":1}`: `: resolved_instances is 1, but resolved_ids has 2`,
		`{"resolved_ids":[]}`:                               `: the report has no instances`,
		"{\"a\":{\"patch_exists\":true},\n\"b\":7}":         `:2: b: it is a JSON number: expected an object`,
		`{"instance_id":"a__b-1","model_name_or_path":"m","model_patch":"x"}` + "\n" + `{"instance_id":"a__b-2","model_patch":""}`: `: the file has predictions of SWE-bench, and no results`,
		`[{"instance_id":"a__b-1","model_patch":"x"}]`: `: the file has predictions of SWE-bench, and no results`,
		`{"a__b-1":{"model_patch":"x"}}`:               `: the file has predictions of SWE-bench, and no results`,
		`{"instance_id":"a__b-1","repo":"a/b","base_commit":"0","problem_statement":"p","hints_text":"","patch":"x","test_patch":"y","version":"1.0",` +
			`"FAIL_TO_PASS":"[\"t\"]","PASS_TO_PASS":"[]","created_at":"2026-01-01","environment_setup_commit":"0","difficulty":"easy"}`: `: the file has instances of SWE-bench, and no results`,
		`{"a":{"patch_exists":true,"resolved":"yes"}}`: `:1: a: resolved is a JSON string: expected true or false`,
	} {
		path := filepath.Join(t.TempDir(), "report.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.True(t, swebench.Format.Recognizes(source.ReadHead(path)), text)
		_, err := swebench.Format.Open(path)
		require.ErrorContains(t, err, path+want)
	}
}

// An instance with an empty report is not lost.
func TestEmptyReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"a": `{"a":{"patch_exists":true,"resolved":true}}`, "b": `{}`} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "report.json"), []byte(text), 0o600))
	}
	res, err := swebench.Format.Open(dir)
	require.NoError(t, err)
	require.Len(t, res.Run.Tasks, 2)
	require.Contains(t, sourcetest.Print(t, res), "or an empty one")
}

func FuzzOpen(f *testing.F) {
	sourcetest.Fuzz(f, swebench.Format, "testdata/report.json", "testdata/openai__gpt-5.run1.json")
}
