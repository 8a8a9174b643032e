package vally_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/dialect"
	"waza/eval/dialect/vally"
	"waza/eval/dialecttest"
	"waza/eval/discover"
	"waza/eval/files"
)

func isSuite(path string) bool { return discover.IsSuite(path) }

// TestMain sets the variables that suites of the archives use.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"VARIABLE_OF_TEST": "value of the variable", "TOKEN_OF_TEST": "value of the token"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func TestShapes(t *testing.T) {
	t.Parallel()
	dialecttest.Run(t, "vally", isSuite)
}

func TestIsSecret(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"PGPASSWORD", "OPENAI_APIKEY", "GH_TOKEN", "MYSQL_PWD", "key"} {
		require.True(t, vally.IsSecret(name), name)
	}
	for _, name := range []string{"PWD", "OLDPWD", "HOME", "MONKEY", "PATH"} {
		require.False(t, vally.IsSecret(name), name)
	}
}

// The suites by other authors, beside the checkout, have no errors.
func TestSharedSuites(t *testing.T) {
	t.Parallel()
	var found []string
	for _, pattern := range []string{"vally-*/eval.yaml", "vally-*/evals/*/eval.yaml"} {
		more, err := filepath.Glob(filepath.FromSlash("../../../../shared/suites/formats/" + pattern))
		require.NoError(t, err)
		found = append(found, more...)
	}
	if len(found) == 0 {
		t.Skip("no shared suites beside the checkout")
	}
	for _, path := range found {
		suite, diags, err := eval.Load(path, eval.Options{})
		require.NoError(t, err)
		require.Empty(t, diags.Errors(), path)
		require.Equal(t, "vally", suite.Format)
		require.NotEmpty(t, suite.Tasks, path)
		for _, task := range suite.Tasks {
			require.NotEmpty(t, task.Inputs.Prompt, path)
			require.True(t, len(task.Effective) > 0 || task.Blocked != "", path)
		}
	}
}

// No text makes the loader fail, and a suite without errors can be written as an eval.yaml.
func FuzzTranslate(f *testing.F) {
	dialecttest.Seed(f, "vally", isSuite)
	path := filepath.Join(f.TempDir(), "evals", "eval.yaml")
	require.NoError(f, os.MkdirAll(filepath.Dir(path), 0o755))
	f.Fuzz(func(t *testing.T, data []byte) {
		suite, found, err := eval.Load(path, eval.Options{View: files.View{Overlay: map[string][]byte{path: data}}})
		require.NoError(t, err)
		if suite == nil {
			require.True(t, found.HasErrors(), "neither a suite nor an error")
			return
		}
		if suite.Format != "vally" || found.HasErrors() {
			return
		}
		root, err := suite.Node()
		require.NoError(t, err)
		_, err = dialect.Encode(root)
		require.NoError(t, err)
	})
}
