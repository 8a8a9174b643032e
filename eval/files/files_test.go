package files_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/files"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// Opening a named pipe used to wait for a writer, usually forever. An earlier check is not
// enough, because the regular file may have been replaced meanwhile.
func TestOpenNeverBlocks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o644))
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink("pipe", link))
	socket := filepath.Join(shortDir(t), "s")
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	defer listener.Close()
	for _, path := range []string{pipe, link, dir, socket, "/dev/zero"} {
		_, err := files.Open(path)
		require.ErrorIs(t, err, files.ErrNotRegular, path)
		_, err = files.OpenWithin(filepath.Dir(path), path)
		require.ErrorIs(t, err, files.ErrNotRegular, path)
	}
	_, err = files.Open(filepath.Join(dir, "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// shortDir returns a directory with a path short enough for the name of a socket.
func shortDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "f")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// linked creates a directory with links that lead to its file sub/file, out of it, and nowhere. alias
// is a link to the directory.
func linked(t *testing.T) (in, alias string) {
	dir := t.TempDir()
	in = filepath.Join(dir, "in")
	write(t, filepath.Join(dir, "secret"), "secret")
	write(t, filepath.Join(in, "sub", "file"), "file")
	for name, target := range map[string]string{
		"near": "sub/file", "absolute": filepath.Join(in, "sub", "file"), "back": "../in/sub/file", "directory": "sub",
		"out": "../secret", "far": filepath.Join(dir, "secret"), "up": "..", "process": "/proc/self/environ", "broken": "nothing",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(in, name)))
	}
	alias = filepath.Join(dir, "alias")
	require.NoError(t, os.Symlink("in", alias))
	return in, alias
}

func TestLinksStayInTheDirectory(t *testing.T) {
	t.Parallel()
	in, alias := linked(t)
	for _, path := range []string{"sub/file", "near", "absolute", "back", "directory/file"} {
		for _, root := range []string{in, alias} {
			f, err := files.OpenWithin(root, filepath.Join(root, path))
			require.NoError(t, err, path)
			data, err := files.ReadAll(f, 100)
			require.NoError(t, err)
			require.Equal(t, "file", string(data))
			require.NoError(t, f.Close())
			require.True(t, files.Within(root, filepath.Join(root, path)), path)
		}
	}
	for _, path := range []string{"out", "far", "up/secret", "../secret"} {
		_, err := files.OpenWithin(in, filepath.Join(in, path))
		require.ErrorIs(t, err, files.ErrEscapes, path)
		require.False(t, files.Within(in, filepath.Join(in, path)), path)
	}
	_, err := files.OpenWithin(in, filepath.Join(in, "process"))
	require.Error(t, err)
	_, err = files.OpenWithin(in, filepath.Join(in, "broken"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A tree opens the same files as OpenNamed, whatever it opened before, and refuses the others with the
// same errors.
func TestTreeIsTheSameAsOpenNamed(t *testing.T) {
	t.Parallel()
	in, alias := linked(t)
	require.NoError(t, syscall.Mkfifo(filepath.Join(in, "sub", "pipe"), 0o600))
	paths := []string{
		"sub/file", "near", "absolute", "back", "directory/file", "out", "far", "up/secret", "up/in/near", "../secret", "broken", "sub",
		"sub/nothing", "nothing/file", "process", "sub/pipe", "directory/pipe", ".", "..",
	}
	for _, root := range []string{in, alias} {
		tree := &files.Tree{Dir: root, Name: "the root"}
		for i := range paths {
			for _, path := range []string{paths[i], paths[(7*i+3)%len(paths)]} {
				path = filepath.Join(root, path)
				want, wantErr := files.ReadNamed(root, "the root", path, 100)
				got, err := tree.Read(path, 100)
				require.Equal(t, want, got, path)
				require.Equal(t, wantErr, err, path)
				require.Equal(t, files.Within(root, path), tree.Contains(path), path)
			}
		}
		tree.Close()
	}
}

func TestReadAllRefusesByTheSize(t *testing.T) {
	t.Parallel()
	path := write(t, filepath.Join(t.TempDir(), "f"), "12345")
	read := func(limit int64) (string, error) {
		f, err := files.Open(path)
		require.NoError(t, err)
		defer f.Close()
		data, err := files.ReadAll(f, limit)
		return string(data), err
	}
	text, err := read(5)
	require.NoError(t, err)
	require.Equal(t, "12345", text)
	_, err = read(4)
	require.ErrorIs(t, err, files.ErrTooLarge)
	require.EqualError(t, err, "file too large: 5 bytes, the limit is 4 bytes")
	require.NoError(t, os.Truncate(path, 200<<30))
	_, err = read(8 << 20)
	require.EqualError(t, err, "file too large: 214748364800 bytes, the limit is 8 MiB")
}

// A sparse file of hundreds of gigabytes takes no space on a disk. It used to be read to its
// end, even after the caller had gone away.
func TestCopyEndsWithItsContext(t *testing.T) {
	t.Parallel()
	path := write(t, filepath.Join(t.TempDir(), "f"), "")
	require.NoError(t, os.Truncate(path, 200<<30))
	f, err := files.Open(path)
	require.NoError(t, err)
	defer f.Close()
	require.ErrorIs(t, files.Copy(t.Context(), io.Discard, f, 1<<30), files.ErrTooLarge)

	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	written := 0
	w := writer(func(b []byte) (int, error) {
		if written += len(b); written > 1<<20 {
			cancel(why)
		}
		return len(b), nil
	})
	require.ErrorIs(t, files.Copy(ctx, w, f, 1<<40), why)
	require.Less(t, written, 2<<20)
}

type writer func(b []byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

func TestCopyIsComplete(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat([]byte("0123456789"), 50_000)
	path := write(t, filepath.Join(t.TempDir(), "f"), string(text))
	f, err := files.Open(path)
	require.NoError(t, err)
	defer f.Close()
	var b bytes.Buffer
	require.NoError(t, files.Copy(t.Context(), &b, f, int64(len(text))))
	require.True(t, bytes.Equal(text, b.Bytes()))
}

func TestSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0 bytes", 1023: "1023 bytes", 1 << 10: "1 KiB", 1<<20 + 1: "1048577 bytes", 8 << 20: "8 MiB",
		1 << 30: "1 GiB", 16 << 30: "16 GiB",
	} {
		require.Equal(t, want, files.Size(n))
	}
}
