// Package sandboxtest helps tests of programs in sandboxes: see [Root].
package sandboxtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// programs are those of busybox in a root file system.
const programs = "sh cat echo ls rm sleep true touch id ps mount mknod wc ip setsid nproc dd kill nc wget nslookup awk"

// Root returns a root file system with the programs of busybox, and makes crun the engine of
// containers. It skips the test on a machine that cannot run it. The test cannot be parallel, because
// it changes the environment.
func Root(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"crun", "unshare", "busybox"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("skipped: %s is not installed", name)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("skipped: crun needs the root user")
	}
	busybox, err := exec.LookPath("busybox")
	require.NoError(t, err)
	binary, err := os.ReadFile(busybox)
	require.NoError(t, err)
	dir := t.TempDir()
	for _, sub := range []string{"bin", "etc", "proc", "dev", "tmp", "sys"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, sub), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", "busybox"), binary, 0o755))
	for name := range strings.FieldsSeq(programs) {
		require.NoError(t, os.Symlink("busybox", filepath.Join(dir, "bin", name)))
	}
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Setenv("WAZA_CONTAINER_RUNTIME", "crun")
	return dir
}
