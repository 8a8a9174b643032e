package tokens_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/tokens"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o777))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o666))
}

func TestLimits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, ".git/HEAD", "")
	limitsOf := func(from string, want map[string]int) {
		t.Helper()
		l, _, err := tokens.FindLimits(filepath.Join(dir, from))
		require.NoError(t, err)
		for file, n := range want {
			got, _ := l.Of(filepath.FromSlash(file))
			require.Equal(t, n, got, file)
		}
	}
	write(t, dir, "skills/x/SKILL.md", "")
	limitsOf("skills/x", map[string]int{
		"SKILL.md": 500, "skills/x/SKILL.md": 500, "a.md": 2000, "references/a.md": 1000, "x/references/deep/a.md": 1000,
		"docs/a.md": 1500, "docs/README.md": 3000, "a.mdx": 2000, "CONTRIBUTING.md": 2500,
	})
	write(t, dir, ".token-limits.json", `{"defaults": {"*.md": 10, "skills/**/*.md": 20}, "overrides": {"skills/x/SKILL.md": 30}}`)
	limitsOf("skills/x", map[string]int{
		"skills/x/SKILL.md": 30, "skills/x/a.md": 20, "b.md": 10, "b.mdx": 2000,
		filepath.Join(dir, "skills/x/SKILL.md"): 30,
	})
	write(t, dir, ".waza.yaml", "tokens:\n  fallbackLimit: 7\n  limits:\n    defaults: {'*.md': 5}\n")
	limitsOf("skills", map[string]int{"skills/x/SKILL.md": 5, "b.mdx": 7})
}

func TestFaultyLimits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[]":                            ".token-limits.json must be an object",
		"{":                             ".token-limits.json:",
		`{"defaults": {"*.md": "x"}}`:   ".token-limits.json:1:",
		"{\n\"defaults\": {\"*\": []}}": ".token-limits.json:2:",
	} {
		dir := t.TempDir()
		write(t, dir, ".git/HEAD", "")
		write(t, dir, ".token-limits.json", text)
		_, _, err := tokens.FindLimits(dir)
		require.ErrorContains(t, err, want)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a.md", "b/c.MDX", "b/d.txt", "node_modules/e.md", "dist/f.md", ".github/g.md"} {
		write(t, dir, name, "x")
	}
	found, err := tokens.Find(dir)
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, ".github/g.md"), filepath.Join(dir, "a.md"), filepath.Join(dir, "b/c.MDX")}, found)
	_, err = tokens.Find(filepath.Join(dir, "nowhere"))
	require.ErrorContains(t, err, "no such file")
}
