//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
)

// accessToken makes a token and returns it.
func accessToken(t *testing.T, env []string) string {
	t.Helper()
	out, code := waza(t, env, "token", "create", "--ttl", "30d", "--json")
	require.Equal(t, exit.Passed, code)
	var pair struct {
		Access string `json:"access_token"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &pair))
	require.NotEmpty(t, pair.Access)
	return pair.Access
}

// until reads messages of the job stream up to one of a type, and returns it.
func until(t *testing.T, ws *websocket.Conn, kind string) (m map[string]any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for m["type"] != kind {
		_, data, err := ws.Read(ctx)
		require.NoError(t, err, kind)
		m = nil
		require.NoError(t, json.Unmarshal(data, &m))
	}
	return m
}

// A run of another process appears at once, and its job fails when the process is killed.
func TestServeJobs(t *testing.T) {
	t.Parallel()
	env := environment(t)
	_, _, jobs := startServer(t, env)
	ws, _, err := websocket.Dial(t.Context(), "ws://"+jobs+"/ws?token="+accessToken(t, env), nil)
	require.NoError(t, err)
	defer ws.CloseNow()
	until(t, ws, "sync")

	run := startWaza(t, env, "run", "../../docs/examples/remote", "--json")
	created := until(t, ws, "job_created")
	at, err := time.Parse(time.RFC3339, created["created_at"].(string))
	require.NoError(t, err)
	t.Logf("a run of another process is seen after %v", time.Since(at))
	require.Equal(t, created["job_id"], until(t, ws, "tool_eval_init")["job_id"])
	require.NoError(t, run.Process.Kill())
	failed := until(t, ws, "job_failed")
	require.Equal(t, []any{created["job_id"], "interrupted"}, []any{failed["job_id"], failed["status"]})
}

// The example of the documentation prints what runs.
func TestJobsExample(t *testing.T) {
	t.Parallel()
	const flag = "--experimental-websocket"
	if err := exec.Command("node", flag, "-e", "new WebSocket('ws://127.0.0.1:1').onerror = () => {}").Run(); err != nil {
		t.Skip("node is missing, or too old to have WebSocket")
	}
	env := environment(t)
	_, _, jobs := startServer(t, env)
	example := exec.CommandContext(t.Context(), "node", flag, filepath.Join("..", "..", "docs", "examples", "jobs.mjs"), "ws://"+jobs)
	example.Env = slices.Concat(env, []string{"TOKEN=" + accessToken(t, env)})
	example.Stderr = t.Output()
	out, err := example.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, example.Start())
	t.Cleanup(func() {
		_ = example.Process.Kill()
		_ = example.Wait()
	})
	lines := bufio.NewReader(out)
	says := func(want string) {
		t.Helper()
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, want)
	}
	says("0 active, 0 recent")
	_, code := waza(t, env, "run", "../../testdata/suites/hello")
	require.Equal(t, exit.Passed, code)
	says(": 0 of ")
	var last string
	for !strings.Contains(last, " done") {
		last, err = lines.ReadString('\n')
		require.NoError(t, err)
	}
}
