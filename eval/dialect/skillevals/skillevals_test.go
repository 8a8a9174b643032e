package skillevals_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/dialecttest"
	"waza/eval/files"
)

func isSuite(path string) bool {
	base := filepath.Base(path)
	return base == "evals.json" || base == "evals.yaml" || base == "evals.yml"
}

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

// Agents get all skills of a collection, for cases and for trigger tests.
func TestCollection(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		".git/HEAD":         "ref: refs/heads/main\n",
		"skills/a/SKILL.md": "---\nname: alpha\ndescription: d\n---\n",
		"skills/b/SKILL.md": "---\nname: beta\ndescription: d\n---\n",
		"evals/evals.json": `{"skill_name": "greek-letters", "evals": [{"prompt": "p", "expectations": ["x"]},
			{"prompt": "t", "skill": "beta", "should_trigger": true}]}`,
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	suite, found, err := eval.Load(filepath.Join(dir, "evals", "evals.json"), eval.Options{})
	require.NoError(t, err)
	require.Empty(t, found.Errors())
	want := []string{filepath.Join(dir, "skills", "a"), filepath.Join(dir, "skills", "b")}
	require.Equal(t, want, suite.Tasks[0].Skills)
	require.Equal(t, want, suite.Triggers.Skills)
	require.Equal(t, "beta", suite.Triggers.ShouldTrigger[0].Skill)
}
