package workspace_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"waza/eval"
	"waza/runner/workspace"
)

// open creates a workspace with the given name that shares spares.
func open(t *testing.T, spares *workspace.Spares, parent, name string, files ...eval.InputFile) (w *workspace.Workspace, inode uint64) {
	t.Helper()
	w = &workspace.Workspace{
		Ctx: t.Context(), Suite: &eval.Suite{}, Path: filepath.Join(parent, name), Spares: spares,
		Task: &eval.Task{Inputs: eval.Inputs{Files: files}}, Fill: func(text string) string { return text },
	}
	dir, err := w.Dir()
	require.NoError(t, err)
	require.Equal(t, w.Path, dir)
	var st unix.Stat_t
	require.NoError(t, unix.Lstat(dir, &st))
	return w, st.Ino
}

// A workspace that nobody changed becomes the next one. It has disappeared in the meantime, and
// looks new afterwards.
func TestSpareDirectory(t *testing.T) {
	t.Parallel()
	var spares workspace.Spares
	parent := t.TempDir()
	first, inode := open(t, &spares, parent, "first")
	require.NoError(t, os.Chtimes(first.Path, time.Unix(1, 0), time.Unix(1, 0)))
	require.NoError(t, first.Close())
	require.NoDirExists(t, first.Path)
	content := "hello"
	second, again := open(t, &spares, parent, "second", eval.InputFile{Path: "a.txt", Content: &content})
	require.Equal(t, inode, again)
	info, err := os.Stat(second.Path)
	require.NoError(t, err)
	require.Less(t, time.Since(info.ModTime()), time.Hour)
	require.Equal(t, os.ModeDir|0o700, info.Mode())
	third, other := open(t, &spares, parent, "third")
	require.NotEqual(t, inode, other, "the second one is in use")
	require.NoError(t, second.Close())
	require.NoError(t, third.Close())
	require.NoDirExists(t, second.Path)
	require.NoDirExists(t, third.Path)
}

// A trial gets nothing that an agent left in its workspace, or did to it.
func TestAttackSpareDirectory(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, dir string){
		"file": func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "left"), nil, 0o600))
		},
		"hidden": func(t *testing.T, dir string) { require.NoError(t, os.Mkdir(filepath.Join(dir, ".left"), 0)) },
		"mode":   func(t *testing.T, dir string) { require.NoError(t, os.Chmod(dir, 0o777|os.ModeSetgid)) },
		"attribute": func(t *testing.T, dir string) {
			if err := unix.Setxattr(dir, "user.left", []byte("x"), 0); err != nil {
				t.Skip("this file system has no attributes")
			}
		},
		"flags": func(t *testing.T, dir string) {
			f, err := os.Open(dir)
			require.NoError(t, err)
			defer f.Close()
			if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, 0x80); err != nil { // no access times
				t.Skip("this file system has no flags")
			}
		},
		"replaced": func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(dir))
			require.NoError(t, os.Mkdir(dir, 0o700))
		},
		"link": func(t *testing.T, dir string) {
			require.NoError(t, os.Rename(dir, dir+"-2"))
			require.NoError(t, os.Symlink(dir+"-2", dir))
		},
		"gone": func(t *testing.T, dir string) { require.NoError(t, os.Remove(dir)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var spares workspace.Spares
			parent := t.TempDir()
			first, _ := open(t, &spares, parent, "first")
			change(t, first.Path)
			require.NoError(t, first.Close())
			_, err := os.Lstat(first.Path)
			require.ErrorIs(t, err, os.ErrNotExist)
			left, err := filepath.Glob(filepath.Join(parent, ".spare-*"))
			require.NoError(t, err)
			require.Empty(t, left)

			// A directory that waits for the next trial is not safe from agents either.
			second, _ := open(t, &spares, parent, "second")
			require.NoError(t, second.Close())
			left, err = filepath.Glob(filepath.Join(parent, ".spare-*"))
			require.NoError(t, err)
			require.Len(t, left, 1)
			change(t, left[0])
			third, _ := open(t, &spares, parent, "third")
			names, err := os.ReadDir(third.Path)
			require.NoError(t, err)
			require.Empty(t, names)
			info, err := os.Lstat(third.Path)
			require.NoError(t, err)
			require.Equal(t, os.ModeDir|0o700, info.Mode())
			n, err := unix.Listxattr(third.Path, nil)
			require.NoError(t, err)
			require.Zero(t, n)
			require.NoError(t, third.Close())
		})
	}
}
