package rpc_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/rpc"
	"waza/runner"
	"waza/runner/proc/proctest"
	"waza/runner/record"
)

// After a single line over a pipe, the reply, all notifications and eval.complete come back
// before the end.
func TestRunThenEOF(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, connect transport) {
		c := connect(t, newServer(t, rpc.Options{}))
		c.request("eval.run", map[string]any{"path": suite(t, short)})
		require.NoError(t, c.w.Close())
		lines := c.rest()
		require.Contains(t, lines[0], `"result":{"runId":`)
		require.Contains(t, lines[len(lines)-1], `"eval.complete"`)
		if c.ended != nil {
			require.NoError(t, c.exit())
		}
	})
}

// eval.run also works as a notification, without a reply.
func TestRunAsNotification(t *testing.T) {
	t.Parallel()
	c := stdio(t, newServer(t, rpc.Options{}))
	c.send(`{"jsonrpc":"2.0","method":"eval.run","params":{"path":"` + suite(t, short) + `"}}` + "\n")
	require.NoError(t, c.w.Close())
	lines := c.rest()
	require.Contains(t, lines[0], `"run_start"`)
	require.Contains(t, lines[len(lines)-1], `"eval.complete"`)
	require.NoError(t, c.exit())
}

func TestEmptyInput(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, newServer(t, rpc.Options{}).ServeStdio(t.Context(), strings.NewReader(""), &out))
	require.Empty(t, out.String())
}

// gone starts a run, makes the client leave, and checks that the run is cancelled and the server
// ends with the error want.
func gone(t *testing.T, leave func(c *client), want error) {
	t.Helper()
	r, err := runner.New(runner.Options{StateDir: t.TempDir()})
	require.NoError(t, err)
	c := stdio(t, newServer(t, rpc.Options{Runner: r}))
	id := c.start(map[string]any{"path": suite(t, slow)})
	c.wait("trial_start")
	leave(c)
	require.ErrorIs(t, c.exit(), want)
	h, err := r.Catalog().Run(id)
	require.NoError(t, err)
	p, err := h.Progress()
	require.NoError(t, err)
	require.Equal(t, record.StatusCancelled, p.Status)
}

// The server notices that nobody reads its output, even if it has nothing to write and its input
// is open.
func TestOutputGone(t *testing.T) {
	t.Parallel()
	gone(t, func(c *client) { c.r.Close() }, rpc.ErrClientGone)
}

func TestClientKilled(t *testing.T) {
	t.Parallel()
	gone(t, func(c *client) {
		c.w.Close()
		c.r.Close()
	}, rpc.ErrClientGone)
}

func TestProcessGone(t *testing.T) {
	t.Parallel()
	owner := exec.Command("sleep", "600")
	proctest.Start(t, owner)
	gone(t, func(c *client) {
		c.must("initialize", map[string]any{"processId": owner.Process.Pid}, nil)
		require.NoError(t, owner.Process.Kill())
		_ = owner.Wait()
	}, rpc.ErrClientGone)
}

func TestNoSuchProcess(t *testing.T) {
	t.Parallel()
	gone(t, func(c *client) {
		c.send(`{"jsonrpc":"2.0","id":9,"method":"initialize","params":{"processId":2147483646}}` + "\n")
	}, rpc.ErrClientGone)
}

func TestExitWithoutShutdown(t *testing.T) {
	t.Parallel()
	gone(t, func(c *client) { c.send(`{"jsonrpc":"2.0","method":"exit"}` + "\n") }, rpc.ErrExit)
}

// shutdown cancels the client's runs and the client is notified of their end; then exit ends the
// process with code 0.
func TestShutdownThenExit(t *testing.T) {
	t.Parallel()
	gone(t, func(c *client) {
		_, reported := c.collect(c.request("shutdown", nil))
		refused, more := c.collect(c.request("ping", nil))
		require.EqualValues(t, -32007, refused.Error.Code)
		reported = append(reported, more...)
		c.send(`{"jsonrpc":"2.0","method":"exit"}` + "\n")
		for _, line := range c.rest() {
			var m message
			require.NoError(t, json.Unmarshal([]byte(line), &m))
			reported = append(reported, m)
		}
		last := reported[len(reported)-1]
		require.Equal(t, "eval.complete", last.Method)
		require.Equal(t, "cancelled", last.Params.Status)
	}, nil)
}

func TestContextOfStdio(t *testing.T) {
	t.Parallel()
	s := newServer(t, rpc.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- s.ServeStdio(ctx, inR, outW) }()
	c := &client{TB: t, w: inW, r: outR}
	c.scan = bufio.NewReader(outR)
	late := time.AfterFunc(patience, func() { outR.CloseWithError(os.ErrDeadlineExceeded) })
	defer late.Stop()
	id := c.start(map[string]any{"path": suite(t, slow)})
	c.wait("trial_start")
	why := errors.New("a signal")
	cancel(why)
	list := c.follow(id) // the client is notified before the end
	require.Equal(t, "cancelled", list[len(list)-1].Params.Status)
	require.ErrorIs(t, <-ended, why)
}

// Messages framed by Content-Length, as language clients send them.
func TestContentLength(t *testing.T) {
	t.Parallel()
	c := stdio(t, newServer(t, rpc.Options{}))
	body := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	c.send("Content-Length: 40\r\n\r\n" + body)
	require.Len(t, body, 40)
	require.NoError(t, c.w.Close())
	got, err := io.ReadAll(c.scan)
	require.NoError(t, err)
	require.Equal(t, "Content-Length: 40\r\n\r\n"+`{"jsonrpc":"2.0","id":1,"result":"pong"}`, string(got))
}

// Language clients send "params": null with shutdown and exit. The server refused both and kept
// running.
func TestNullParamsEndServer(t *testing.T) {
	t.Parallel()
	c := stdio(t, newServer(t, rpc.Options{}))
	c.send(`{"jsonrpc":"2.0","id":1,"method":"ping","params":null}` + "\n")
	require.EqualValues(t, -32600, c.next().Error.Code, "JSON-RPC does not allow these params")
	c.send(`{"jsonrpc":"2.0","id":2,"method":"shutdown","params":null}` + "\n")
	require.Nil(t, c.next().Error)
	c.send(`{"jsonrpc":"2.0","method":"exit","params":null}` + "\n")
	require.Empty(t, c.rest())
	require.NoError(t, c.exit())
}
