// Package proctest runs programs of tests beside trials. A program that a test starts by itself
// can inherit the mark of a trial that starts at the same time, and is then killed when the trial
// ends. Call [Output] and [Start] in tests whose process also executes trials.
package proctest

import (
	"bytes"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/proc"
)

// Start starts a program. The caller waits for it.
func Start(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	require.NoError(t, proc.StartApart(cmd))
}

// Output is like [exec.Cmd.CombinedOutput].
func Output(cmd *exec.Cmd) ([]byte, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := proc.StartApart(cmd); err != nil {
		return nil, err
	}
	err := cmd.Wait()
	return out.Bytes(), err
}
