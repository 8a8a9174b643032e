//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// workersOf returns the processes that evaluate JavaScript for a waza.
func workersOf(waza int) []int {
	var pids []int
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range files {
		stat, err := os.ReadFile(f)
		_, rest, ok := strings.Cut(string(stat), ") ")
		var state string
		var pid, parent int
		if err != nil || !ok {
			continue
		}
		if _, err := fmt.Sscan(rest, &state, &parent); err != nil || parent != waza {
			continue
		}
		args, err := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
		if _, scan := fmt.Sscan(string(stat), &pid); err == nil && scan == nil && bytes.Contains(args, []byte("javascript-assertions")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// An assertion that blocks in one operation of its engine must not outlive a killed waza.
func TestAttackKilledWazaLeavesNoWorker(t *testing.T) {
	t.Parallel()
	suite := filepath.Join(t.TempDir(), "eval.yaml")
	require.NoError(t, os.WriteFile(suite, []byte(`name: stuck
config: {trials_per_task: 100}
graders: [{name: stuck, type: code, config: {language: javascript, assertions: ['/(x+x+)+\1y/.test("x".repeat(40))']}}]
tasks: [{id: a, prompt: hello}]
`), 0o600))
	c := startWaza(t, environment(t), "run", suite)
	var pids []int
	require.Eventually(t, func() bool { pids = workersOf(c.Process.Pid); return len(pids) > 0 }, patience, 5*time.Millisecond)
	require.NoError(t, c.Process.Kill())
	_ = c.Wait()
	for _, pid := range pids {
		require.Eventually(t, func() bool { // gone, or dead and not reaped yet
			args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			return len(args) == 0
		}, patience, 5*time.Millisecond)
	}
}
