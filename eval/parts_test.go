package eval_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/reach"
)

func TestPartsIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(rel string) string { return filepath.Join(dir, rel) }
	require.NoError(t, os.MkdirAll(at("s/evals"), 0o755))
	require.NoError(t, os.WriteFile(at("s/evals/a.yaml"), nil, 0o600))
	require.NoError(t, os.Symlink("s", at("link")))
	require.NoError(t, os.Symlink("evals/a.yaml", at("s/same")))
	for name, c := range map[string]struct {
		file, task, skill string
		want              []string
	}{
		"inside":                     {"s/evals/eval.yaml", "s/evals/a.yaml", "s", []string{"s/evals", "s/evals/a.yaml", "s/evals/eval.yaml"}},
		"a skill through a link":     {"s/evals/eval.yaml", "s/evals/a.yaml", "link", []string{"link/evals", "link/evals/a.yaml", "link/evals/eval.yaml"}},
		"a suite through a link":     {"link/evals/eval.yaml", "link/evals/a.yaml", "s", []string{"s/evals", "s/evals/a.yaml", "s/evals/eval.yaml"}},
		"beside SKILL.md":            {"s/eval.yaml", "s/a.yaml", "s", []string{"s/a.yaml", "s/eval.yaml"}},
		"above the skill":            {"eval.yaml", "a.yaml", "s", nil},
		"tasks in a skill elsewhere": {"e/eval.yaml", "s/evals/a.yaml", "s", []string{"s/evals/a.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &eval.Suite{Places: reach.Places{File: at(c.file), Dir: filepath.Dir(at(c.file))}, Tasks: []*eval.Task{{File: at(c.task)}}}
			var want []string
			for _, rel := range c.want {
				want = append(want, at(rel))
			}
			require.Equal(t, want, s.PartsIn(at(c.skill)))
		})
	}
	s := &eval.Suite{Places: reach.Places{File: at("s/evals/eval.yaml"), Dir: at("s/evals")}}
	withheld := s.Withholds(at("link"))
	require.True(t, withheld(at("link/evals")))
	require.True(t, withheld(at("link/same")))
	require.False(t, withheld(at("link/SKILL.md")))
}
