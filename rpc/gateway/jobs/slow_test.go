//go:build unix

package jobs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"waza/rpc/gateway/jobs"
	"waza/rpc/gateway/jobs/board"
	"waza/rpc/gateway/jobs/token"
	"waza/rpc/gateway/store"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// A page that does not read is disconnected. It delays neither the run nor other pages.
func TestAttackPageThatNeverReads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := store.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	tokens, err := token.New(t.Context(), s)
	require.NoError(t, err)
	// Results have the maximum size, so that few of them fill the buffers of the kernel.
	call := record.ToolCall{Name: "f", Arguments: json.RawMessage(`"` + strings.Repeat("x", 16_000) + `"`)}
	const trials = 600
	permits := make(chan struct{}, 2*trials) // keep the run from outrunning a page that reads
	for range 20 {
		permits <- struct{}{}
	}
	r := runnertest.AgentRunner(t, dir, func(_ context.Context, t *executor.Trial) (string, error) {
		<-permits
		t.Transcript.ToolCall(call)
		return "good", nil
	})
	b := board.New(board.Options{Runner: r, UserOf: func(context.Context, string) (string, error) { return token.Owner, nil }})
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { b.Serve(ctx) })
	t.Cleanup(func() {
		cancel()
		all.Wait()
	})
	c := jobs.Defaults()
	c.SendQueueBytes = 1 << 20
	_, addr := open(t, c, jobs.Options{Tokens: tokens, Board: b})
	pair, err := tokens.Create(t.Context(), token.Grant{})
	require.NoError(t, err)
	connect := func(dialer *net.Dialer) *websocket.Conn {
		client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}
		ws, _, err := websocket.Dial(t.Context(), "ws://"+addr+"/ws?token="+pair.Access, &websocket.DialOptions{HTTPClient: client})
		require.NoError(t, err)
		ws.SetReadLimit(1 << 20)
		t.Cleanup(func() { _ = ws.CloseNow() })
		_, _, err = ws.Read(t.Context())
		require.NoError(t, err)
		return ws
	}
	// read counts the results until the job or the connection ends.
	read := func(ws *websocket.Conn) (results int, err error) {
		for {
			_, data, err := ws.Read(t.Context())
			if err != nil || strings.HasPrefix(string(data), `{"type":"job_completed"`) {
				return results, err
			}
			if strings.HasPrefix(string(data), `{"type":"tool_eval_result"`) {
				results++
				permits <- struct{}{}
			}
		}
	}
	slow := connect(&net.Dialer{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		failed := raw.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10) })
		require.NoError(t, failed)
		return err
	}})
	quick := connect(&net.Dialer{})
	suite := fmt.Sprintf("-- eval.yaml --\nname: s\nskill: s\nconfig: {executor: agent, workers: 2, parallel: "+
		"true, trials_per_task: %d}\ntasks:\n%s",
		trials, runnertest.Inline(1))
	run := runnertest.Start(t, r, suite, record.Request{})
	results, err := read(quick)
	require.NoError(t, err)
	require.Equal(t, trials, results)
	<-run.Done()
	results, err = read(slow)
	require.Error(t, err)
	require.Less(t, results, trials)
	if code := websocket.CloseStatus(err); code != -1 { // the server does not wait long for the close frame
		require.Equal(t, websocket.StatusTryAgainLater, code)
	}
	connect(&net.Dialer{})
}
