package checkout

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/proc/proctest"
)

// Where waza cannot list the settings of all repositories, git does not work.
func TestAttackManyRepositories(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	for i := range maxRepositories + 1 {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, fmt.Sprint(i), ".git"), 0o700))
	}
	cmd := exec.Command("git", "-C", dir, "status")
	cmd.Env = SafeEnviron(t.Context(), os.Environ(), dir)
	out, err := proctest.Output(cmd)
	require.Error(t, err)
	require.Contains(t, string(out), "the workspace has more than 100 git repositories")
}

// Repositories of the caller elsewhere work as before, and ceilings of the environment stay.
func TestSafeEnvironKeepsOthers(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	other, dir := t.TempDir(), t.TempDir()
	environ := SafeEnviron(t.Context(), append(os.Environ(), "GIT_CEILING_DIRECTORIES=/first"), dir)
	require.Contains(t, environ, "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir)+":/first")
	for _, args := range []string{"init --quiet", "status", "rev-parse --show-toplevel"} {
		cmd := exec.Command("git", append([]string{"-C", other}, strings.Fields(args)...)...)
		cmd.Env = environ
		out, err := proctest.Output(cmd)
		require.NoError(t, err, string(out))
	}
}
