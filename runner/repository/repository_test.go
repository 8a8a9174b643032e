package repository_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/proc/proctest"
	"waza/runner/repository"
)

// A repository is fetched once for each commit, also by several callers at once, and nothing else stays.
func TestFetch(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	source, state := t.TempDir(), t.TempDir()
	git := func(args ...string) {
		out, err := proctest.Output(exec.Command("git", append([]string{"-C", source, "-c", "user.name=n", "-c", "user.email=n@example.com"}, args...)...))
		require.NoError(t, err, string(out))
	}
	git("init", "--quiet", "--initial-branch=main")
	require.NoError(t, os.WriteFile(filepath.Join(source, "a"), []byte("1"), 0o644))
	git("add", ".")
	git("commit", "--quiet", "-m", "one")
	git("tag", "v1")
	url, s := "file://"+filepath.ToSlash(source), repository.At(state)
	_, found := s.Find(url, "v1")
	require.False(t, found)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			dir, err := s.Fetch(t.Context(), url, "v1")
			if err != nil || dir == "" {
				t.Errorf("%q, %v", dir, err)
			}
		})
	}
	all.Wait()
	dir, found := s.Find(url, "v1")
	require.True(t, found)
	content, err := os.ReadFile(filepath.Join(dir, "a"))
	require.NoError(t, err)
	require.Equal(t, "1", string(content))
	_, err = s.Fetch(t.Context(), url, "none")
	require.Error(t, err)
	entries, err := os.ReadDir(filepath.Join(state, "repositories"))
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.NoError(t, os.RemoveAll(source)) // a second call fetches nothing
	again, err := s.Fetch(t.Context(), url, "v1")
	require.NoError(t, err)
	require.Equal(t, dir, again)
}
