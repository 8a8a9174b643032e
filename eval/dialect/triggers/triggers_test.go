package triggers_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/dialecttest"
	"waza/eval/files"
)

func isSuite(path string) bool {
	name := filepath.Base(path)
	return name == "trigger-evals.json" || name == "routing.json"
}

func TestShapes(t *testing.T) {
	t.Parallel()
	dialecttest.Run(t, "triggers", isSuite)
}

// No text makes the loader fail.
func FuzzTranslate(f *testing.F) {
	dialecttest.Seed(f, "triggers", isSuite)
	path := filepath.Join(f.TempDir(), "evals", "trigger-evals.json")
	require.NoError(f, os.MkdirAll(filepath.Dir(path), 0o755))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _, err := eval.Load(path, eval.Options{View: files.View{Overlay: map[string][]byte{path: data}}})
		require.NoError(t, err)
	})
}
