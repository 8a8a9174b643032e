package rpc_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/rpc"
	"waza/rpc/internal/wire"
)

// $/cancelRequest ends an attack: its reply is the error, and the grader that ran is ended.
func TestCancelledAttack(t *testing.T) {
	t.Parallel()
	mark := newMark()
	dir := write(t, `
-- eval.yaml --
name: slow
tasks:
  - {id: quick, prompt: hi, graders: [{type: text, name: a, config: {contains: [b]}}]}
  - {id: slow, prompt: hi, graders: [{type: program, name: a, config: {command: sleep, args: ["`+mark+`"], timeout: 3600}}]}
`)
	c := stdio(t, newServer(t, rpc.Options{}))
	id := c.request("eval.attack", map[string]any{"path": filepath.Join(dir, "eval.yaml"), "agents": []string{"nop"}})
	m := c.next()
	require.Equal(t, "eval.attacked", m.Method)
	require.Equal(t, "quick", m.Params.TaskID)
	c.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":` + id + `}}` + "\n")
	reply, _ := c.collect(id)
	require.NotNil(t, reply.Error)
	require.EqualValues(t, wire.CodeCancelled, reply.Error.Code)
	if _, err := os.Stat("/proc/self/cmdline"); err == nil {
		require.Zero(t, sleepers(mark))
	}
}
