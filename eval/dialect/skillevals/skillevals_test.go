package skillevals_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/dialect"
	"waza/eval/dialecttest"
	"waza/eval/files"
)

func isSuite(path string) bool { return filepath.Base(path) == "evals.json" }

func TestShapes(t *testing.T) {
	t.Parallel()
	dialecttest.Run(t, "skillevals", isSuite)
}

// The skill evals by other authors, beside the checkout, have no errors.
func TestSharedSuites(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob(filepath.FromSlash("../../../../shared/suites/formats/skill-*/evals/evals.json"))
	require.NoError(t, err)
	if len(found) == 0 {
		t.Skip("no shared suites beside the checkout")
	}
	for _, path := range found {
		suite, diags, err := eval.Load(path, eval.Options{})
		require.NoError(t, err)
		require.Empty(t, diags.Errors(), path)
		require.Equal(t, "skill-evals", suite.Format)
		require.NotEmpty(t, suite.Tasks, path)
		for _, task := range suite.Tasks {
			require.NotEmpty(t, task.Inputs.Prompt, path)
			require.NotEmpty(t, task.Effective, path)
		}
	}
}

// Repeated ids cost no more than other ids.
func TestManyRepeatedIDs(t *testing.T) {
	t.Parallel()
	const cases = 5000
	path := filepath.Join(t.TempDir(), "evals.json")
	content := "[" + strings.TrimSuffix(strings.Repeat(`{"id": 1, "prompt": "a"},`, cases), ",") + "]"
	suite, _, err := eval.Load(path, eval.Options{View: files.View{Overlay: map[string][]byte{path: []byte(content)}}})
	require.NoError(t, err)
	require.Len(t, suite.Tasks, cases)
	require.Equal(t, fmt.Sprintf("1-%d", cases), suite.Tasks[cases-1].ID)
}

// No text makes the loader fail, and a suite without errors can run.
func FuzzTranslate(f *testing.F) {
	dialecttest.Seed(f, "skillevals", isSuite)
	path := filepath.Join(f.TempDir(), "s", "evals", "evals.json")
	require.NoError(f, os.MkdirAll(filepath.Dir(path), 0o755))
	f.Fuzz(func(t *testing.T, data []byte) {
		suite, found, err := eval.Load(path, eval.Options{View: files.View{Overlay: map[string][]byte{path: data}}})
		require.NoError(t, err)
		if suite == nil {
			require.True(t, found.HasErrors(), "neither a suite nor an error")
			return
		}
		require.LessOrEqual(t, len(suite.Tasks), len(data), "more tasks than bytes")
		if suite.Format != "" && !found.HasErrors() {
			root, err := suite.Node()
			require.NoError(t, err)
			_, err = dialect.Encode(root)
			require.NoError(t, err)
		}
	})
}
