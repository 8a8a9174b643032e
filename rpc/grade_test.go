package rpc_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/rpc"
	"waza/rpc/internal/wire"
)

// A grading that waits for a grader does not block other requests, is refused a second time, and
// can be cancelled.
func TestGradeCancelled(t *testing.T) {
	t.Parallel()
	c := stdio(t, newServer(t, rpc.Options{}))
	dir := write(t, `
-- eval.yaml --
name: short
tasks:
  - {id: a, prompt: x}
-- slow.yaml --
name: short
config: {sandbox: off}
tasks:
  - id: a
    prompt: x
    graders: [{type: program, name: slow, config: {command: sh, args: [-c, "touch $WAZA_MARK; sleep 1000"]}}]
    inputs: {prompt: x, environment: {WAZA_MARK: MARK}}
`)
	mark, slow := filepath.Join(dir, "started"), filepath.Join(dir, "slow.yaml")
	text, err := os.ReadFile(slow)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(slow, bytes.ReplaceAll(text, []byte("MARK}"), []byte(mark+"}")), 0o600))
	id := c.start(map[string]any{"path": filepath.Join(dir, "eval.yaml")})
	c.follow(id)

	asked := c.request("run.grade", map[string]any{"runId": id, "path": slow})
	require.Eventually(t, func() bool {
		_, err := os.Stat(mark)
		return err == nil
	}, patience, 10*time.Millisecond)
	busy := c.call("run.grade", map[string]any{"runId": id})
	require.EqualValues(t, wire.CodeBusy, busy.Error.Code)
	require.Contains(t, busy.Error.Message, "is already being graded or reviewed")
	var s struct{ Status string }
	c.must("run.status", map[string]any{"runId": id}, &s)
	require.Equal(t, "completed", s.Status)

	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":%s}}`+"\n", asked))
	m, _ := c.collect(asked)
	require.EqualValues(t, wire.CodeCancelled, m.Error.Code)
	var g struct{ Graded, TotalChanged int }
	c.must("run.grade", map[string]any{"runId": id}, &g)
	require.Equal(t, 1, g.Graded)
	require.Zero(t, g.TotalChanged)
}

// An active run is not graded.
func TestGradeOfRunThatGoesOn(t *testing.T) {
	t.Parallel()
	c := stdio(t, newServer(t, rpc.Options{}))
	id := c.start(map[string]any{"path": suite(t, slow)})
	c.wait("trial_start")
	m := c.call("run.grade", map[string]any{"runId": id})
	require.EqualValues(t, wire.CodeRunFailed, m.Error.Code)
	require.Equal(t, "Run failed: run "+id+" is still running", m.Error.Message)
	c.cancel(id)
}
