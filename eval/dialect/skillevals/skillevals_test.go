package skillevals_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/dialecttest"
	"waza/eval/files"
)

func isSuite(path string) bool { return filepath.Base(path) == "evals.json" }

func TestShapes(t *testing.T) {
	t.Parallel()
	dialecttest.Run(t, "skillevals", isSuite)
}

func TestSharedSuites(t *testing.T) {
	t.Parallel()
	dialecttest.Shared(t, "skill-evals", "skill-*/evals/evals.json")
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

func FuzzTranslate(f *testing.F) {
	dialecttest.Seed(f, "skillevals", isSuite)
	dialecttest.Fuzz(f, filepath.Join("s", "evals", "evals.json"))
}
