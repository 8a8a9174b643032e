package trial

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/files"
	"waza/eval/reach"
	"waza/runner/grader"
	"waza/runner/grader/builtin"
	"waza/runner/grader/output"
	"waza/runner/record"
)

// A grader of the suite reads other files for each task. A change of those of one task broke the
// grader for all tasks.
func TestChangedFilesOfOneTask(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	suite := &eval.Suite{Places: reach.Places{Dir: dir, RootDir: dir}}
	env := &Env{Graders: builtin.Graders, Grading: &grader.Env{Suite: suite}}
	spec := &eval.Grader{
		Name: "same", Type: "diff",
		Options: &output.DiffOptions{ExpectedFiles: []output.DiffFile{{Path: "out", Snapshot: "out"}}},
	}
	order := func(name string) *record.Order {
		path := filepath.Join(dir, name, "out")
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(name), 0o600))
		sum, err := files.Digest(path)
		require.NoError(t, err)
		return &record.Order{Suite: suite, Task: &eval.Task{ContextDir: name}, GraderFiles: map[string]string{path: sum}}
	}
	changed, unchanged := order("changed"), order("unchanged")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "changed", "out"), []byte("x"), 0o600))
	for range 2 {
		var fault *grader.ChangedError
		require.ErrorAs(t, env.heldLocked(changed, spec).err, &fault)
		require.NoError(t, env.heldLocked(unchanged, spec).err)
	}
}
