//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
)

// sleepersOf counts the processes that sleep for a unique time.
func sleepersOf(mark string) int {
	n := 0
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && string(b) == "sleep\x00"+mark+"\x00" {
			n++
		}
	}
	return n
}

// The second Ctrl-C ends every process of 50 trials: children and grandchildren, some of which
// ignore signals or have their own session. It may take one second; the limit here is longer
// because the machine can be busy.
func TestInterruptEndsProcessTrees(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("setsid is not installed")
	}
	mark := fmt.Sprintf("%d.%09d", 800+os.Getpid()%100, time.Now().Nanosecond())
	suite := filepath.Join(t.TempDir(), "eval.yaml")
	require.NoError(t, os.WriteFile(suite, []byte(`name: trees
config:
  executor: command
  sandbox: off
  command:
    - sh
    - -c
    - |
      (sleep `+mark+` & wait) &
      sh -c 'trap "" TERM HUP INT; sleep `+mark+` & wait' &
      (setsid sh -c 'trap "" TERM HUP; sleep `+mark+` & wait' </dev/null >/dev/null 2>&1 &)
      sleep `+mark+`
  trials_per_task: 50
  parallel: true
  workers: 50
tasks: [{id: a, prompt: sleep, graders: [{type: text, config: {regex_match: ["."]}}]}]
`), 0o600))
	c := startWaza(t, environment(t), "run", suite)
	require.Eventually(t, func() bool { return sleepersOf(mark) == 50*4 }, patience, 20*time.Millisecond)
	require.NoError(t, c.Process.Signal(os.Interrupt))
	c.says(t, "waiting for 50 trials, at most ")
	require.Equal(t, 50*4, sleepersOf(mark), "the first Ctrl-C ends nothing")
	started := time.Now()
	require.NoError(t, c.Process.Signal(os.Interrupt))
	require.Eventually(t, func() bool { return sleepersOf(mark) == 0 }, patience, 5*time.Millisecond)
	took := time.Since(started)
	t.Logf("all processes gone after %v", took)
	require.Less(t, took, 5*time.Second)
	require.Equal(t, exit.Interrupted, c.exitCode(t))
	require.Contains(t, c.out.String(), "0 of 1 task passed, 1 cancelled")
	require.Regexp(t, `(?m)^a +cancelled +0/0, 50 cancelled`, c.out.String())
}
