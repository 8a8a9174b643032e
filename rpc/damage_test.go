package rpc_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/rpc"
	"waza/rpc/internal/wire"
	"waza/runner"
	"waza/runner/runnertest"
)

// Replies about a damaged run had no word about its damage, and exports of it looked complete.
func TestRepliesShowDamage(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: state})
	require.NoError(t, err)
	c := stdio(t, newServer(t, rpc.Options{Runner: r}))
	path := suite(t, `
-- eval.yaml --
name: asked
config: {executor: mock, trials_per_task: 2}
tasks: [{id: a, prompt: x, graders: [{type: human, name: person}]}]
`)
	id := c.start(map[string]any{"path": path})
	c.follow(id)
	calls := []struct {
		method string
		params map[string]any
	}{
		{"run.pending", map[string]any{"runId": id}},
		{"run.export", map[string]any{"runId": id, "format": "csv"}},
		{"run.grade", map[string]any{"runId": id}},
		{"run.review", map[string]any{"runId": id, "taskId": "a", "trial": 1, "score": 1}},
	}
	for _, call := range calls {
		var reply struct{ Damage *struct{ Parts int } }
		c.must(call.method, call.params, &reply)
		require.Nil(t, reply.Damage, call.method)
	}
	require.NoError(t, os.Remove(filepath.Join(state, "runs", id, "result.json")))
	runnertest.DamageRun(t, state, id)
	for _, call := range calls {
		var reply struct{ Damage *struct{ Parts int } }
		c.must(call.method, call.params, &reply)
		require.NotNil(t, reply.Damage, call.method)
		require.Equal(t, 1, reply.Damage.Parts, call.method)
	}
	other := c.start(map[string]any{"path": path})
	c.follow(other)
	refused := c.call("run.compare", map[string]any{"runIds": []string{other, id}})
	require.NotNil(t, refused.Error)
	require.EqualValues(t, wire.CodeInvalidParams, refused.Error.Code)
	require.Contains(t, refused.Error.Message, "its record is damaged")

	journal := filepath.Join(state, "runs", other, "journal.jsonl")
	b, err := os.ReadFile(journal)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(journal, bytes.Replace(b, []byte("trial_complete"), []byte("trial_complote"), 1), 0o600))
	var resumed struct{ Damage *struct{ Events int } }
	c.must("run.resume", map[string]any{"runId": other}, &resumed)
	require.NotNil(t, resumed.Damage)
	require.Equal(t, 1, resumed.Damage.Events)
	c.follow(other)
}
