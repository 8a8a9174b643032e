package harbor_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/importing/harbor"
	"waza/runner/importing/internal/sourcetest"
	"waza/runner/importing/source"
	"waza/runner/record"
)

func TestOutlines(t *testing.T) {
	t.Parallel()
	sourcetest.Outlines(t, harbor.Format, "testdata/*.json")
}

// A folder of trials is one run. The trajectory of an agent is the transcript of its trial.
func TestFolder(t *testing.T) {
	t.Parallel()
	dir := "testdata/jobs/job1"
	require.True(t, harbor.Format.Recognizes(source.ReadHead(dir)))
	require.False(t, harbor.Format.Recognizes(source.ReadHead("testdata/jobs")))
	sourcetest.Outline(t, harbor.Format, dir, "testdata/folder.want")
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"task_name":"","trial_name":"a"}`:                      `: the id of the task is missing`,
		`{"task_name":"a","trial_name":"a","verifier_result":7}`: `: verifier_result is a JSON number: expected an object`,
		`{"schema_version":"ATIF-v1.0","steps":{}}`:              `: steps is a JSON object: expected an array`,
	} {
		path := filepath.Join(t.TempDir(), "result.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := harbor.Format.Open(path)
		require.ErrorContains(t, err, path+want)
	}
}

// Trials without a result are not lost, and a broken trajectory does not lose the grade.
func TestBrokenFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name, text string) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	trajectory := `{"schema_version":"ATIF-v1.0","session_id":"s","steps":[]}`
	put("b__1/result.json", `{"task_name":"b","trial_name":"b__1","verifier_result":{"rewards":{"reward":1}}}`)
	put("b__1/agent/trajectory.json", trajectory[:40])
	put("b__2/trial.log", "")
	res, err := harbor.Format.Open(dir)
	require.NoError(t, err)
	require.Equal(t, record.StatusInterrupted, res.Status)
	require.Len(t, res.Notes, 1)
	require.Contains(t, res.Notes[0], "the trajectory of b__1 is omitted")
	printed := sourcetest.Print(t, res)
	require.Contains(t, printed, "trial 1: passed")
	require.Contains(t, printed, "the folder of the trial has no result.json")
	put("b__1/agent/trajectory.json", trajectory)
	whole, err := harbor.Format.Open(dir)
	require.NoError(t, err)
	require.NotEqual(t, res.Sum, whole.Sum, "trajectories are a part of the results")
	put("a/result.json", `{"stats":{}}`)
	require.True(t, harbor.Format.Recognizes(source.ReadHead(dir)))
}

func FuzzOpen(f *testing.F) {
	sourcetest.Fuzz(f, harbor.Format, "testdata/trajectory.json", "testdata/jobs/job1/hello__b/result.json")
}
