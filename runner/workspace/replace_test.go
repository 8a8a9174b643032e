//go:build unix

package workspace_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"waza/eval"
	"waza/eval/reach"
	"waza/runner/workspace"
)

// Files that follow replace anything that the agent left in their place, and change nothing else.
func TestAttackFilesThatFollow(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(dir, other string) error{
		"nothing":     func(string, string) error { return nil },
		"file":        func(dir, _ string) error { return os.WriteFile(dir+"/a/b/f", []byte("mine"), 0o400) },
		"link":        func(dir, other string) error { return os.Symlink(other, dir+"/a/b/f") },
		"link inside": func(dir, _ string) error { return os.Symlink("own", dir+"/a/b/f") },
		"hard link":   func(dir, _ string) error { return os.Link(dir+"/own", dir+"/a/b/f") },
		"pipe":        func(dir, _ string) error { return unix.Mkfifo(dir+"/a/b/f", 0o600) },
		"directory":   func(dir, _ string) error { return os.MkdirAll(dir+"/a/b/f/g", 0o700) },
		"locked directory": func(dir, _ string) error {
			return errors.Join(os.MkdirAll(dir+"/a/b/f/g", 0o700), os.Chmod(dir+"/a/b/f", 0))
		},
		"locked folder": func(dir, _ string) error { return os.Chmod(dir+"/a", 0) },
		"file for a folder": func(dir, _ string) error {
			return errors.Join(os.RemoveAll(dir+"/a"), os.WriteFile(dir+"/a", nil, 0o600))
		},
		"link for a folder": func(dir, other string) error {
			return errors.Join(os.RemoveAll(dir+"/a"), os.Symlink(filepath.Dir(other), dir+"/a"))
		},
		"inner link, folder": func(dir, _ string) error { return errors.Join(os.RemoveAll(dir+"/a/b"), os.Symlink("..", dir+"/a/b")) },
		"pipe for a folder":  func(dir, _ string) error { return errors.Join(os.RemoveAll(dir+"/a"), unix.Mkfifo(dir+"/a", 0o600)) },
	} {
		for _, kind := range []string{"content", "source"} {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				parent, content := t.TempDir(), "expected"
				other, source := filepath.Join(parent, "other", "f"), filepath.Join(parent, "suite", "f")
				for _, path := range []string{other, source} {
					require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
					require.NoError(t, os.WriteFile(path, []byte("expected"), 0o600))
				}
				require.NoError(t, os.WriteFile(other, []byte("untouched"), 0o600))
				w := &workspace.Workspace{
					Ctx: t.Context(), Suite: &eval.Suite{Places: reach.Places{Dir: filepath.Dir(source)}}, Task: &eval.Task{}, Path: filepath.Join(parent, "w"),
					Fill: func(text string) string { return text },
				}
				dir, err := w.Dir()
				require.NoError(t, err)
				require.NoError(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(dir, "own"), []byte("untouched"), 0o600))
				require.NoError(t, leave(dir, other))
				file := eval.InputFile{Path: "a/b/f", Content: &content}
				if kind == "source" {
					file = eval.InputFile{Path: "a/b/f", Source: source}
				}
				require.NoError(t, w.Add([]eval.InputFile{file}))
				for path, want := range map[string]string{filepath.Join(dir, "a/b/f"): "expected", filepath.Join(dir, "own"): "untouched", other: "untouched"} {
					info, err := os.Lstat(path)
					require.NoError(t, err)
					require.True(t, info.Mode().IsRegular(), path)
					got, err := os.ReadFile(path)
					require.NoError(t, err)
					require.Equal(t, want, string(got), path)
				}
				info, err := os.Lstat(filepath.Join(dir, "a"))
				require.NoError(t, err)
				require.True(t, info.IsDir())
				require.NoError(t, w.Close())
			})
		}
	}
}

// A place that the agent keeps occupied is its failure. A full disk is not.
func TestBlocked(t *testing.T) {
	t.Parallel()
	for err, want := range map[syscall.Errno]bool{
		syscall.EACCES: true, syscall.EPERM: true, syscall.EEXIST: true, syscall.ENOTEMPTY: true, syscall.ELOOP: true, syscall.ENOENT: true,
		syscall.ENOSPC: false, syscall.EIO: false, syscall.EMFILE: false, syscall.EROFS: false,
	} {
		var blocked *workspace.BlockedError
		require.Equal(t, want, errors.As(workspace.Blocked(&fs.PathError{Op: "open", Path: "x", Err: err}), &blocked), err)
	}
}
