package eval_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/discover"
	"waza/eval/files"
)

// sharedSuites finds the suites by other authors, beside the checkout. The folder formats holds
// suites in formats of other tools.
func sharedSuites(t *testing.T) *discover.Found {
	dir := filepath.Join("..", "..", "shared", "suites")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no shared suites beside the checkout")
	}
	found, err := discover.Suites(dir, files.View{})
	require.NoError(t, err)
	other := filepath.Join(dir, "formats")
	found.Suites = slices.DeleteFunc(found.Suites,
		func(s discover.Summary) bool { return strings.HasPrefix(filepath.FromSlash(s.Path), other) })
	found.Problems = slices.DeleteFunc(found.Problems,
		func(d decode.Diagnostic) bool { return strings.HasPrefix(filepath.FromSlash(d.File), other) })
	return found
}

func TestSharedSuitesLoad(t *testing.T) {
	t.Parallel()
	found := sharedSuites(t)
	require.Empty(t, found.Problems)
	require.Len(t, found.Suites, 3)
	tasks := map[string]int{"code-explainer-eval": 4, "grader-showcase": 6, "cosmosdb-best-practices-eval": 12}
	for _, s := range found.Suites {
		suite, diags, err := eval.Load(s.Path, eval.Options{Vocabulary: vocabulary()})
		require.NoError(t, err)
		for _, d := range diags {
			require.NotEqual(t, decode.Error, d.Severity, d.String())
			require.NotEqual(t, decode.CodeUnknownKey, d.Code, d.String())
		}
		require.Len(t, suite.Tasks, tasks[suite.Name], "%s", suite.Name)
		for _, task := range suite.Tasks {
			require.NotEmpty(t, task.Effective, task.ID)
		}
	}
}
