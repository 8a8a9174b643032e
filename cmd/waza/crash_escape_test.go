//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A process in its own session with an empty environment outlived a killed waza.
func TestCrashKilledWithEscapedProcess(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid from util-linux")
	}
	file := filepath.Join(t.TempDir(), "pid")
	suite := filepath.Join(t.TempDir(), "eval.yaml")
	require.NoError(t, os.WriteFile(suite, []byte(`name: escapes
config:
  executor: command
  sandbox: off
  command: |
    setsid env -i sh -c 'echo $$ > "$0"; exec sleep 1000' "$PID_FILE" </dev/null >/dev/null 2>&1 3>&- &
    sleep 1000
tasks: [{id: a, prompt: x}]
`), 0o600))
	c := startWaza(t, environment(t, "PID_FILE="+file), "run", suite)
	pid := ""
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(file)
		pid = strings.TrimSpace(string(text))
		return strings.HasSuffix(string(text), "\n")
	}, patience, 5*time.Millisecond)
	require.NoError(t, c.Process.Kill())
	_ = c.Wait()
	require.Eventually(t, func() bool { // gone, or dead and not reaped yet
		args, _ := os.ReadFile(fmt.Sprintf("/proc/%s/cmdline", pid))
		return len(bytes.TrimSpace(args)) == 0
	}, patience, 5*time.Millisecond)
}
