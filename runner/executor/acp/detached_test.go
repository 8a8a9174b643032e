//go:build linux

package acp_test

import (
	"os/exec"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Once, a process that an agent started in its own process session lived until the agent ended,
// which was many trials later.
func TestNothingOfATrialIsLeftBesideTheAgent(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid from util-linux")
	}
	f := open(t, setup{})
	out, err := f.exec.Execute(t.Context(), f.trial(t, "daemon"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(out.Output)
	require.NoError(t, err, out.Output)
	requireGone(t, pid)
	before, err := f.exec.Execute(t.Context(), f.trial(t, "pid"))
	require.NoError(t, err)
	after, err := f.exec.Execute(t.Context(), f.trial(t, "pid"))
	require.NoError(t, err)
	require.Equal(t, before.Output, after.Output, "the agent continues")
	require.Equal(t, 1, f.processes(t))
}
