package discover_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"waza/eval"
	"waza/eval/discover"
	"waza/eval/files"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/stretchr/testify/require"
)

// Patterns must match the same as in the library's own matcher.
func TestGlobsMatchLikeTheLibrary(t *testing.T) {
	t.Parallel()
	patterns := []string{"*.yaml", "**/*.yaml", "**", "a/**", "a/**/b.yaml", "{a,b}/*.yaml", "{a/b,c}.yaml", "?.yaml", "[a-c].yaml", "[!a].yaml",
		"[^a-b].yaml", `\*.yaml`, "a**b.yaml", "**/{a,b}.{yaml,yml}", "{**/,}x.yaml", "a.yaml", "é*.yaml", "[é].yaml",
		"*/*", "[]a].yaml", "[a-].yaml", "a,b.yaml", "*.y?ml"}
	paths := []string{"a.yaml", "b.yaml", "c.yaml", "d.yml", "a/b.yaml", "a/x/b.yaml", "a/x/y/b.yaml", "c", "*.yaml", "aXXb.yaml", "ab.yaml", "x.yaml", "q/x.yaml",
		"é.yaml", "éa.yaml", "].yaml", "-.yaml", "a,b.yaml", ".yaml", "a/b.yml", "a/b/c/d.yml"}
	for _, pattern := range patterns {
		re, err := discover.CompileGlob(pattern)
		if !doublestar.ValidatePattern(pattern) {
			require.Error(t, err, pattern)
			continue
		}
		require.NoError(t, err, pattern)
		for _, path := range paths {
			want, err := doublestar.Match(pattern, path)
			require.NoError(t, err)
			require.Equal(t, want, re.MatchString(path), "%s on %s (%s)", pattern, path, re)
		}
	}
	for _, bad := range []string{"[", "{a", "a[", `a\`, strings.Repeat("a", discover.LongestGlob+1)} {
		_, err := discover.CompileGlob(bad)
		require.Error(t, err, bad)
	}
}

// A backtracking matcher needs exponential time for these patterns.
func TestHostileGlobs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := dir
	for range 30 {
		at = filepath.Join(at, "a")
		require.NoError(t, os.MkdirAll(at, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(at, strings.Repeat("a", 60)), nil, 0o644))
	}
	for _, pattern := range []string{strings.Repeat("{a,b}", 150) +
		"*", strings.Repeat("**/", 100) + "*.zzz", strings.Repeat("{**/,a/}", 50) + "*.zzz",
		strings.Repeat("*a", 300), strings.Repeat("{", 400) + strings.Repeat("}", 400), strings.Repeat("[a-z]*", 100)} {
		for _, file := range []string{"eval.yaml", ".gitignore"} {
			text := pattern + "\n"
			if file == "eval.yaml" {
				text = "name: x\ntasks: ['" + pattern + "']\n"
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
		}
		begin := time.Now()
		_, _, err := eval.Load(filepath.Join(dir, "eval.yaml"), eval.Options{})
		require.NoError(t, err)
		_, err = discover.Suites(dir, files.View{})
		require.NoError(t, err)
		require.Less(t, time.Since(begin), 3*time.Minute, pattern)
	}
}
