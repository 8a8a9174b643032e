//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
)

// A run whose embedded server has no room for messages ends with code 3 and the reason. It waited
// for ever.
func TestAttackFullDiskOfFleet(t *testing.T) {
	t.Parallel()
	if os.Getenv("WAZA_TEST_CRASH") == "" {
		t.Skip("waits a minute for room; set WAZA_TEST_CRASH=1")
	}
	disk := smallDisk(t, 64<<20)
	env := environment(t)
	require.NoError(t, os.Symlink(disk, filepath.Join(variable(env, "WAZA_STATE"), "fleet")))
	suite := filepath.Join(t.TempDir(), "eval.yaml")
	require.NoError(t, os.WriteFile(suite, []byte(`name: full
config: {executor: command, sandbox: off, command: 'cat /dev/zero >"$BALLAST"; true', trials_per_task: 20}
tasks:
  - {id: a, prompt: x, inputs: {environment: {BALLAST: `+filepath.Join(disk, "ballast")+`}}}
  - {id: b, prompt: x, inputs: {environment: {BALLAST: `+filepath.Join(disk, "ballast")+`}}}
`), 0o600))
	out, code := waza(t, env, "run", "--fleet", "embedded", suite)
	require.Equal(t, exit.Error, code, out)
	require.Contains(t, out, "the fleet has stored no messages for")
	require.Contains(t, out, "is full")
}
