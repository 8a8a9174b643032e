//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
)

// copyRun makes so many runs of the only one of a state directory.
func copyRun(t *testing.T, state string, n int) {
	t.Helper()
	runs := filepath.Join(state, "runs")
	entries, err := os.ReadDir(runs)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	id := entries[0].Name()
	files := map[string][]byte{}
	for _, name := range []string{"run.json", "journal.jsonl", "result.json"} {
		files[name], err = os.ReadFile(filepath.Join(runs, id, name))
		require.NoError(t, err)
	}
	for i := range n {
		other := fmt.Sprintf("20200101-000000.%03d-copy%06d", i%1000, i)
		require.NoError(t, os.Mkdir(filepath.Join(runs, other), 0o700))
		for name, data := range files {
			require.NoError(t, os.WriteFile(filepath.Join(runs, other, name), bytes.ReplaceAll(data, []byte(id), []byte(other)), 0o600))
		}
	}
}

// With 10,000 recorded runs, the server starts, and the first message to a page has the ten latest.
func TestServeWithManyRuns(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("writes 30,000 files")
	}
	env := environment(t)
	_, code := waza(t, env, "run", "../../testdata/suites/hello")
	require.Equal(t, exit.Passed, code)
	copyRun(t, variable(env, "WAZA_STATE"), 9_999)
	token := accessToken(t, env)
	_, _, jobs := startServer(t, env)
	ws, _, err := websocket.Dial(t.Context(), "ws://"+jobs+"/ws?token="+token, nil)
	require.NoError(t, err)
	defer ws.CloseNow()
	sync := until(t, ws, "sync")
	require.Len(t, sync["recent_jobs"], 10)
}
