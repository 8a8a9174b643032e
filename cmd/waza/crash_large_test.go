//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A run with trials of 4 MB each kept hundreds of ended, unrecorded trials in memory. When its
// process is killed, each worker loses one trial at most.
func TestCrashLargeOutputs(t *testing.T) {
	t.Parallel()
	c := newCrash(t, t.TempDir())
	c.size.tasks, c.size.trials, c.size.kills = 1, 2000, max(2, c.size.kills/5)
	const workers = 4
	require.NoError(t, os.WriteFile(c.suite, []byte(`name: large
config:
  executor: command
  sandbox: off
  command: head -c 4000000 /dev/zero | tr '\0' x; echo "$WAZA_TRIAL"; echo "a/$WAZA_TRIAL" >> "$EXECUTED"
  trials_per_task: 2000
  parallel: true
  workers: `+strconv.Itoa(workers)+`
graders: [{name: long, type: text, config: {contains: [xxx]}}]
tasks: [{id: t0, prompt: x}]
`), 0o600))
	for kills := range c.size.kills {
		before := len(c.executed())
		cmd, out := c.command(c.args()...)
		require.NoError(t, cmd.Start())
		c.awaitLarge(before + 10 + c.rand.IntN(20))
		c.kill(cmd)
		dir := c.runDir()
		require.NotEmpty(t, dir, "%s", out)
		c.id = filepath.Base(dir)
		journal, err := os.ReadFile(filepath.Join(dir, "journal.jsonl"))
		require.NoError(t, err)
		recorded := bytes.Count(journal, []byte(`"type":"trial_complete"`))
		ended := 0
		for _, times := range c.executed() {
			ended += times
		}
		require.LessOrEqual(t, ended-recorded, workers*(kills+1), "%d trials ended, %d are recorded", ended, recorded)
	}
}

// awaitLarge waits until so many trials have ended.
func (c *crash) awaitLarge(trials int) {
	c.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); len(c.executed()) < trials; <-tick.C {
		require.True(c, time.Now().Before(deadline), "trials do not end")
	}
}
