package proc

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The ids since a moment are known only while they cannot have started again.
func TestKnowsIDs(t *testing.T) {
	t.Parallel()
	start := Now()
	require.NoError(t, Run(t.Context(), Command{Args: []string{"true"}}))
	if start.lastID == 0 || !idsAscend.Load() {
		t.Skip("this system does not show the ids that it gives")
	}
	now := time.Now().Add(time.Minute) // also on a machine that halts this test
	for name, c := range map[string]struct {
		m    Moment
		last int
		want bool
	}{
		"no id since":       {Moment{lastID: 500, at: now}, 500, true},
		"a few ids":         {Moment{lastID: 500, at: now}, 510, true},
		"too many ids":      {Moment{lastID: 500, at: now}, 500 + maxRecent + 1, false},
		"ids started again": {Moment{lastID: 500, at: now}, 400, false},
		"too old":           {Moment{lastID: 500, at: now.Add(-time.Hour)}, 510, false},
		"unknown":           {Moment{at: now}, 10, false},
		"unknown now":       {Moment{lastID: 500, at: now}, 0, false},
		"zero":              {Moment{}, 0, false},
	} {
		require.Equal(t, c.want, c.m.knowsIDs(c.last), name)
	}
}

// A search of recent ids also sees processes that start while it runs.
func TestLastID(t *testing.T) {
	t.Parallel()
	if lastID() == 0 {
		t.Skip("this system does not show the ids that it gives")
	}
	before := lastID()
	cmd := exec.Command("sleep", "1000")
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	if after := lastID(); before < after { // else they have just started again
		require.Greater(t, cmd.Process.Pid, before)
		require.LessOrEqual(t, cmd.Process.Pid, after)
	}
	require.True(t, isProcess(cmd.Process.Pid))
	tasks, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	for _, task := range tasks {
		id, err := strconv.Atoi(task.Name())
		require.NoError(t, err)
		require.Equal(t, id == os.Getpid(), isProcess(id))
	}
}
