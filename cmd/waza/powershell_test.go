package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The script for PowerShell completes commands. Without PowerShell, its text must pass waza the
// words before the cursor, including an empty one.
func TestPowershellCompletion(t *testing.T) {
	t.Parallel()
	script, code := waza(t, environment(t), "completion", "powershell")
	require.Zero(t, code)
	require.Contains(t, script, "Register-ArgumentCompleter -Native -CommandName waza")
	require.Contains(t, script, "waza complete -- @words")
	require.Equal(t, strings.Count(script, "{"), strings.Count(script, "}"))
	pwsh, err := exec.LookPath("pwsh")
	if err != nil {
		return
	}
	cmd := exec.Command(pwsh, "-NoProfile", "-Command", script+"\n(TabExpansion2 'waza run --exec' 15).CompletionMatches.CompletionText")
	cmd.Env = environment(t)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--executor")
}
