package files_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/files"
)

// TestMain lets a test start this binary with a different umask, because the umask belongs to a
// whole process.
func TestMain(m *testing.M) {
	if path := os.Getenv("FILES_TEST_REPLACE"); path != "" {
		if err := replaceWith(path, "new"); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func replaceWith(path, text string) error {
	f, err := files.Replace(path)
	if err != nil {
		return err
	}
	if _, err := f.Write([]byte(text)); err != nil {
		return err
	}
	return f.Commit()
}

// All files written for a user used to have the permissions 0644, regardless of the umask and of
// the replaced file.
func TestReplaceHonoursPermissions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		umask    string
		existing fs.FileMode // 0 for none
		want     fs.FileMode
	}{
		{"022", 0, 0o644}, {"077", 0, 0o600}, {"027", 0, 0o640}, {"002", 0, 0o664},
		{"022", 0o600, 0o600}, {"077", 0o644, 0o644}, {"077", 0o640, 0o640},
	} {
		path := filepath.Join(t.TempDir(), "report.html")
		if tt.existing != 0 {
			require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
			require.NoError(t, os.Chmod(path, tt.existing))
		}
		self, err := os.Executable()
		require.NoError(t, err)
		cmd := exec.Command("sh", "-c", "umask "+tt.umask+` && exec "$0"`, self)
		cmd.Env = append(os.Environ(), "FILES_TEST_REPLACE="+path, "GORACE=atexit_sleep_ms=0")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, tt.want, info.Mode().Perm(), "umask %s, over a file of %#o", tt.umask, tt.existing)
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "new", string(data))
	}
}

func TestReplaceIsAtomic(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "f"), "old")
	f, err := files.Replace(path)
	require.NoError(t, err)
	_, err = f.Write([]byte("half of it"))
	require.NoError(t, err)
	f.Discard()
	require.Equal(t, []string{"f"}, names(t, dir))
	require.NoError(t, replaceWith(path, "all of it"))
	require.Equal(t, []string{"f"}, names(t, dir))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "all of it", string(data))

	_, err = files.Replace(filepath.Join(dir, "none", "f"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	var pe *fs.PathError
	require.True(t, errors.As(err, &pe))
	require.Equal(t, filepath.Join(dir, "none", "f"), pe.Path, "the requested path")

	require.NoError(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
	require.Error(t, replaceWith(filepath.Join(dir, "d"), "text"))
	require.Equal(t, []string{"d", "f"}, names(t, dir))
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// A directory of a suite can be a link to anywhere, and so can one below it.
func TestReplaceWithinStaysInTheDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	require.NoError(t, os.Mkdir(in, 0o755))
	require.NoError(t, os.Mkdir(out, 0o755))
	require.NoError(t, os.Symlink("../out", filepath.Join(in, "link")))
	require.NoError(t, os.Symlink("deep", filepath.Join(in, "near")))
	for _, path := range []string{"f", "deep/er/f", "near/f"} {
		f, err := files.ReplaceWithin(in, filepath.Join(in, path))
		require.NoError(t, err, path)
		_, err = f.Write([]byte(path))
		require.NoError(t, err)
		require.NoError(t, f.Commit())
		data, err := os.ReadFile(filepath.Join(in, path))
		require.NoError(t, err)
		require.Equal(t, path, string(data))
	}
	for _, path := range []string{"link/f", "link/new/f", "../out/f", "."} {
		_, err := files.ReplaceWithin(in, filepath.Join(in, path))
		require.ErrorIs(t, err, files.ErrEscapes, path)
	}
	require.Empty(t, names(t, out))
}
