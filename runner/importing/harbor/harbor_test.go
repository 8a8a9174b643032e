package harbor_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/importing/harbor"
	"waza/runner/importing/internal/sourcetest"
	"waza/runner/importing/source"
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

func FuzzOpen(f *testing.F) {
	sourcetest.Fuzz(f, harbor.Format, "testdata/trajectory.json", "testdata/jobs/job1/hello__b/result.json")
}
