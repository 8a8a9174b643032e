package rpc_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/rpc"
	"waza/rpc/internal/wire"
)

// counted is a suite whose program appends a line to a file for each trial.
const counted = `
-- eval.yaml --
name: counted
config:
  executor: command
  sandbox: off
  command: 'echo "$WAZA_TASK_ID" >>"$WAZA_SUITE_DIR.log"; echo ok'
  trials_per_task: 2
graders: [{name: check, type: program, config: {command: sh, args: [check.sh]}}]
tasks: ["tasks/*.yaml"]
-- check.sh --
exit 0
-- tasks/a.yaml --
{id: a, prompt: x}
-- tasks/b.yaml --
{id: b, prompt: x}
`

type changed struct {
	WatchID, RunID, Error string
	Files, Tasks          []string
	TotalTasks            int
	Diagnostics           []struct{ Severity string }
}

// changed reads up to the next eval.changed and, if a run follows, to its end.
func (c *client) changed() changed {
	c.Helper()
	for {
		line, ok := c.line()
		require.True(c, ok, "the output has ended")
		var m struct {
			Method string
			Params changed
		}
		if !strings.Contains(line, `"eval.changed"`) {
			continue
		}
		require.NoError(c, json.Unmarshal([]byte(line), &m), line)
		if m.Params.RunID != "" {
			consecutive(c, 1, c.follow(m.Params.RunID))
		}
		return m.Params
	}
}

// After an edit of one task, only its trials run again. After an edit of a grader, nothing is
// executed.
func TestEvalWatch(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, connect transport) {
		c := connect(t, newServer(t, rpc.Options{}))
		dir := write(t, counted)
		log := func() string {
			data, err := os.ReadFile(dir + ".log")
			require.NoError(t, err)
			require.NoError(t, os.Truncate(dir+".log", 0))
			return strings.Join(strings.Fields(string(data)), " ")
		}
		save := func(name, text string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		var w struct{ WatchID string }
		c.must("eval.watch", map[string]any{"path": dir}, &w)
		first := c.changed()
		require.Equal(t, changed{WatchID: w.WatchID, RunID: first.RunID, Files: []string{}, Tasks: []string{"a", "b"}, TotalTasks: 2}, first)
		require.Equal(t, "a a b b", log())

		save("tasks/b.yaml", "{id: b, prompt: y}")
		next := c.changed()
		require.Equal(t, []string{filepath.Join(dir, "tasks/b.yaml")}, next.Files)
		require.Equal(t, []string{"b"}, next.Tasks)
		require.Equal(t, "b b", log())

		save("check.sh", "exit 1")
		next = c.changed()
		require.Equal(t, []string{filepath.Join(dir, "check.sh")}, next.Files)
		require.Equal(t, []string{"a", "b"}, next.Tasks)
		require.Empty(t, log())

		save("tasks/a.yaml", "{id: a, prompt: }")
		next = c.changed()
		require.Empty(t, next.RunID)
		require.Contains(t, fmt.Sprint(next.Diagnostics), "error")
		save("tasks/a.yaml", "{id: a, prompt: z}")
		next = c.changed()
		require.Equal(t, []string{"a"}, next.Tasks)
		require.Equal(t, "a a", log())

		var u struct{ Watched bool }
		c.must("eval.unwatch", map[string]any{"watchId": w.WatchID}, &u)
		require.True(t, u.Watched)
	})
}

// The end of the input ends all watches, so that the daemon can end. An active run continues to
// its end, which is reported.
func TestWatchesEndWithTheClient(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, connect transport) {
		c := connect(t, newServer(t, rpc.Options{}))
		var w struct{ WatchID string }
		c.must("eval.watch", map[string]any{"path": write(t, counted)}, &w)
		require.NoError(t, c.w.Close())
		for {
			if _, more := c.line(); !more {
				break
			}
		}
	})
}

func TestTooManyWatches(t *testing.T) {
	t.Parallel()
	c := stdio(t, newServer(t, rpc.Options{}))
	path := filepath.Join(write(t, "-- eval.yaml --\nname: [\n"), "eval.yaml")
	const limit = 16
	for i := range limit {
		m := c.call("eval.watch", map[string]any{"path": path})
		require.Nil(t, m.Error, "%d: %v", i, m.Error)
	}
	m := c.call("eval.watch", map[string]any{"path": path})
	require.EqualValues(t, wire.CodeBusy, m.Error.Code)
	require.Contains(t, fmt.Sprint(m.Error.Data), "watches of a connection")
	var u struct{ Watched bool }
	c.must("eval.unwatch", map[string]any{"watchId": "w3"}, &u)
	require.True(t, u.Watched)
	m = c.call("eval.watch", map[string]any{"path": path})
	require.Nil(t, m.Error)
}
