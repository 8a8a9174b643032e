package eval_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/discover"
	"waza/eval/files"
)

// A task file that exists only in an editor matches patterns, and belongs to the suites above
// it.
func TestUnsavedTaskFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	suite, saved := filepath.Join(dir, "eval.yaml"), filepath.Join(dir, "tasks", "a.yaml")
	require.NoError(t, os.Mkdir(filepath.Dir(saved), 0o755))
	require.NoError(t, os.WriteFile(suite, []byte("name: x\ntasks: [tasks/*.yaml]\n"), 0o644))
	require.NoError(t, os.WriteFile(saved, []byte("id: a\nprompt: Hi.\n"), 0o644))
	unsaved, elsewhere := filepath.Join(dir, "tasks", "b.yaml"), filepath.Join(dir, "b.yaml")
	o := eval.Options{View: files.View{Overlay: map[string][]byte{
		unsaved: []byte("id: b\nprompt: Hi.\n"), elsewhere: []byte("id: c\n"), saved: []byte("id: changed\nprompt: Hi.\n"),
	}}}
	s, _, err := eval.Load(suite, o)
	require.NoError(t, err)
	require.Len(t, s.Tasks, 2)
	require.NotNil(t, s.Task("changed"))
	require.NotNil(t, s.Task("b"))

	inner := filepath.Join(dir, "tasks", "eval.yaml")
	o.Overlay[inner] = []byte("name: y\n")
	require.Equal(t, []string{inner, suite}, discover.Above(unsaved, o.View)[:2])
}
