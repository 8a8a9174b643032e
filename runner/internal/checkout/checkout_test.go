package checkout_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/internal/checkout"
	"waza/runner/proc/proctest"
)

// repository creates a repository with two commits, and a branch and a tag at the first.
func repository(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	do := func(args ...string) { run(t, dir, args...) }
	do("init", "--quiet", "--initial-branch=main")
	write(t, dir, "a.txt", "one")
	write(t, dir, "sub/b.txt", "b")
	do("add", ".")
	do("commit", "--quiet", "-m", "one")
	do("branch", "feature")
	do("tag", "v1")
	write(t, dir, "a.txt", "two")
	do("commit", "--quiet", "-am", "two")
	return dir
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=n", "-c", "user.email=n@example.com"}, args...)...)
	out, err := proctest.Output(cmd)
	require.NoError(t, err, string(out))
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return string(b)
}

func TestMake(t *testing.T) {
	t.Parallel()
	src, ctx := repository(t), t.Context()
	for name, want := range map[string]string{"": "two", "HEAD": "two", "main": "two", "feature": "one", "v1": "one", "HEAD~1": "one"} {
		id, err := checkout.Resolve(ctx, filepath.Join(src, "sub"), name)
		require.NoError(t, err, name)
		dir := filepath.Join(t.TempDir(), "repo")
		require.NoError(t, checkout.Make(ctx, filepath.Join(src, "sub"), id, dir), name)
		require.Equal(t, want, read(t, dir, "a.txt"), name)
		require.Equal(t, id, run(t, dir, "rev-parse", "HEAD"))
		require.Equal(t, "HEAD", run(t, dir, "rev-parse", "--abbrev-ref", "HEAD"), "HEAD is detached")
		require.Empty(t, run(t, dir, "status", "--short"))
		require.Empty(t, run(t, dir, "remote"), "nobody pushes to the source by accident")
		require.Equal(t, "feature\nmain", run(t, dir, "for-each-ref", "--format=%(refname:short)", "refs/heads"))
	}
	require.Len(t, strings.Split(run(t, src, "worktree", "list"), "\n"), 1, "the source learns nothing")
}

// Changes of an agent in a checkout do not affect the source. Several checkouts can be made at
// once, also of a linked worktree and of a bare repository.
func TestMakeLeavesTheSourceAlone(t *testing.T) {
	t.Parallel()
	src, ctx := repository(t), t.Context()
	linked, bare := filepath.Join(t.TempDir(), "linked"), filepath.Join(t.TempDir(), "bare.git")
	run(t, src, "worktree", "add", "--quiet", linked, "feature")
	run(t, src, "clone", "--quiet", "--bare", src, bare)
	before := run(t, src, "for-each-ref")
	var all sync.WaitGroup
	for _, source := range []string{src, linked, bare, src, src} {
		dir := t.TempDir() // the directory exists and is empty
		all.Go(func() {
			id, err := checkout.Resolve(ctx, source, "")
			if err != nil {
				t.Error(err)
				return
			}
			if err := checkout.Make(ctx, source, id, dir); err != nil {
				t.Error(err)
				return
			}
			for _, args := range [][]string{
				{"checkout", "--quiet", "-b", "mine"}, {"branch", "-D", "feature"},
				{"commit", "--quiet", "--allow-empty", "-m", "x"}, {"gc", "--quiet", "--prune=now"},
			} {
				cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=n", "-c", "user.email=n@example.com"}, args...)...)
				if out, err := proctest.Output(cmd); err != nil {
					t.Errorf("%v: %v: %s", args, err, out)
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, before, run(t, src, "for-each-ref"))
	run(t, src, "fsck", "--strict")
}

// A directory of files has nothing of the history.
func TestFiles(t *testing.T) {
	t.Parallel()
	src := repository(t)
	id, err := checkout.Resolve(t.Context(), src, "v1")
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "files")
	require.NoError(t, checkout.Files(t.Context(), src, id, dir))
	require.Equal(t, "one", read(t, dir, "a.txt"))
	require.Equal(t, "b", read(t, dir, "sub/b.txt"))
	require.NoDirExists(t, filepath.Join(dir, ".git"))
	require.ErrorContains(t, checkout.Files(t.Context(), src, id, dir), "already exists")
}

// Files have the line ends of the source. Filters that only its settings define do not run, so files that
// need one cannot be compared.
func TestFilesWithSettings(t *testing.T) {
	t.Parallel()
	src := repository(t)
	write(t, src, ".gitattributes", "secret/* filter=crypt\n")
	write(t, src, "secret/a.txt", "x\n")
	write(t, src, "lines.txt", "one\ntwo\n")
	run(t, src, "add", ".")
	run(t, src, "commit", "--quiet", "-m", "three")
	files := func(paths ...string) (string, error) {
		id, err := checkout.Resolve(t.Context(), src, "")
		require.NoError(t, err)
		dir := filepath.Join(t.TempDir(), "files")
		return dir, checkout.Files(t.Context(), src, id, dir, paths...)
	}
	run(t, src, "config", "core.autocrlf", "true")
	dir, err := files(".")
	require.NoError(t, err, "nobody defines the filter, so both sides are unfiltered")
	require.Equal(t, "one\r\ntwo\r\n", read(t, dir, "lines.txt"))
	run(t, src, "config", "filter.crypt.smudge", "tr a-z b-za")
	_, err = files("sub", "secret")
	require.ErrorContains(t, err, `secret/a.txt needs the git filter "crypt", which only the settings of the repository `+src+" define")
	_, err = files("sub")
	require.NoError(t, err)
}

// A partial clone lacks files of earlier commits, and a checkout never fetches them. The error names the
// command that does.
func TestPartialClone(t *testing.T) {
	t.Parallel()
	src, partial := repository(t), filepath.Join(t.TempDir(), "partial")
	run(t, src, "config", "uploadpack.allowFilter", "true")
	run(t, src, "clone", "--quiet", "--filter=blob:none", "file://"+src, partial)
	id, err := checkout.Resolve(t.Context(), partial, "v1")
	require.NoError(t, err)
	err = checkout.Files(t.Context(), partial, id, filepath.Join(t.TempDir(), "files"))
	require.ErrorContains(t, err, "it is a partial clone, so fetch its files first: git fetch --refetch --no-filter")
	run(t, partial, "fetch", "--quiet", "--refetch", "--no-filter")
	dir := filepath.Join(t.TempDir(), "files")
	require.NoError(t, checkout.Files(t.Context(), partial, id, dir))
	require.Equal(t, "one", read(t, dir, "a.txt"))
}

func TestFaults(t *testing.T) {
	t.Parallel()
	src := repository(t)
	none := t.TempDir()
	for _, c := range []struct{ source, name, want string }{
		{src, "nope", src + ` has no commit "nope"; use a commit id, a branch or a tag`},
		{src, "--upload-pack=x", src + ` has no commit "--upload-pack=x"; use a commit id, a branch or a tag`},
		{src, "^v1", src + ` has no commit "^v1"; use a commit id, a branch or a tag`},
		{src, "v1:a.txt", src + ` has no commit "v1:a.txt"; use a commit id, a branch or a tag`},
		{none, "", none + " is not a readable git repository: fatal: not a git repository"},
		{filepath.Join(none, "gone"), "", "no such directory: " + filepath.Join(none, "gone")},
	} {
		_, err := checkout.Resolve(t.Context(), c.source, c.name)
		require.ErrorContains(t, err, c.want)
	}
	id, err := checkout.Resolve(t.Context(), src, "")
	require.NoError(t, err)
	full := t.TempDir()
	write(t, full, "x", "x")
	require.ErrorContains(t, checkout.Make(t.Context(), src, id, full), "already exists and is not an empty directory")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, checkout.Make(ctx, src, id, filepath.Join(none, "d")), context.Canceled)
}

// A program that git hooks start inherits variables that name their repository.
func TestInAHook(t *testing.T) {
	src := repository(t)
	other := repository(t)
	t.Setenv("GIT_DIR", filepath.Join(other, ".git"))
	t.Setenv("GIT_INDEX_FILE", filepath.Join(other, ".git", "index"))
	id, err := checkout.Resolve(t.Context(), src, "v1")
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "d")
	require.NoError(t, checkout.Make(t.Context(), src, id, dir))
	require.Equal(t, "one", read(t, dir, "a.txt"))
}
