package dotnet_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/dialecttest"
	"waza/eval/files"
)

func isSuite(path string) bool { return filepath.Base(path) == "eval.yaml" }

func TestSuites(t *testing.T) {
	t.Parallel()
	dialecttest.Run(t, "dotnet", isSuite)
}

// The suite of dotnet/skills, beside the checkout, has no errors.
func TestSharedSuite(t *testing.T) {
	t.Parallel()
	suite, found, err := eval.Load(filepath.FromSlash("../../../../shared/suites/formats/dotnet-scenarios/eval.yaml"), eval.Options{})
	if err != nil {
		t.Skip("no shared suites beside the checkout")
	}
	require.Empty(t, found.Errors())
	require.Equal(t, "dotnet-skills", suite.Format)
	require.Len(t, suite.Tasks, 1)
	require.Len(t, suite.Tasks[0].Effective, 4, "three texts and the rubric")
}

// A file of waza, Vally or promptfoo with scenarios is not a suite of skill-validator.
func TestOtherFiles(t *testing.T) {
	t.Parallel()
	for _, content := range []string{
		"name: a\nscenarios: [{name: x, prompt: y}]\ntasks: [{id: a, prompt: b}]\n",
		"stimuli: [{name: x, prompt: y}]\nscenarios: [{name: x, prompt: y}]\n",
		"scenarios: [{config: [], tests: []}]\n",
		"scenarios: {name: x, prompt: y}\n",
	} {
		path := filepath.Join(t.TempDir(), "eval.yaml")
		suite, _, err := eval.Load(path, eval.Options{View: files.View{Overlay: map[string][]byte{path: []byte(content)}}})
		require.NoError(t, err)
		require.True(t, suite == nil || suite.Format != "dotnet-skills", content)
	}
}

func FuzzTranslate(f *testing.F) {
	dialecttest.Seed(f, "dotnet", isSuite)
	dialecttest.Fuzz(f, filepath.Join("tests", "plugin", "skill", "eval.yaml"))
}
