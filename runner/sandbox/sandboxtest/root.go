// Package sandboxtest helps tests of programs in sandboxes: see [Root] and [Podman].
package sandboxtest

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// programs are those of busybox in a root file system.
const programs = "sh cat echo ls rm sleep true touch id ps mount mknod wc ip setsid nproc dd kill nc wget nslookup awk mkdir chmod ln cp"

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
	dir := t.TempDir()
	require.NoError(t, writeRoot(dir))
	t.Setenv("WAZA_CONTAINER_RUNTIME", "crun")
	return dir
}
