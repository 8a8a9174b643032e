package proctest

import (
	"os"
	"testing"
)

// longDir is the length of a path of a directory from which on names of sockets in it can be too long:
// systems limit them to about a hundred bytes.
const longDir = 60

// ShortDir returns a directory whose path is short enough for names of sockets, wherever temporary files
// are. It is removed when the test ends.
func ShortDir(t testing.TB) string {
	t.Helper()
	parent := os.TempDir()
	if len(parent) > longDir {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "w")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
