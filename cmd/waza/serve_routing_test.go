//go:build unix

package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
	"waza/runner/record"
)

// frame is a message of the protocol of the router.
type frame struct {
	Type    string         `json:"type"`
	Payload map[string]any `json:"payload"`
}

// connectClient registers a client with the router until the test ends. The client answers with
// the given function.
func connectClient(t *testing.T, address, name, description string, answer func(payload map[string]any) frame) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	conn, _, err := websocket.Dial(ctx, "ws://"+address+"/", nil)
	require.NoError(t, err)
	var answering sync.WaitGroup
	t.Cleanup(func() {
		_ = conn.CloseNow()
		answering.Wait()
		cancel()
	})
	require.NoError(t, wsjson.Write(ctx, conn, frame{"registration", map[string]any{"name": name, "description": description}}))
	var registered frame
	require.NoError(t, wsjson.Read(ctx, conn, &registered))
	require.Equal(t, true, registered.Payload["success"], "%v", registered)
	answering.Go(func() {
		for {
			var f frame
			if wsjson.Read(ctx, conn, &f) != nil {
				return
			}
			if f.Type == "message" {
				_ = wsjson.Write(ctx, conn, answer(f.Payload))
			}
		}
	})
}

// Messages of a suite in another process reach the connected clients of the server; without a
// server they are errors.
func TestLiveRouting(t *testing.T) {
	t.Parallel()
	env := environment(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "eval.yaml"), []byte(`name: live
config: {executor: router, router: {live: true, voice: 0.75}}
tasks:
  - {id: note, prompt: "take a note: buy milk", expected: {recipients: [notebook]}}
  - {id: secret, prompt: take a note of this secret, expected: {recipients: []}}
  - {id: weather, prompt: will it rain, expected: {recipients: []}}
`), 0o600))
	run := func() (res struct{ Summary record.Summary }, code int) {
		t.Helper()
		out, code := waza(t, env, "run", dir, "--json")
		require.NoError(t, json.Unmarshal([]byte(out), &res))
		return res, code
	}
	res, code := run()
	require.Equal(t, exit.Error, code)
	require.Equal(t, 3, res.Summary.Routing.Errors)

	server := startWaza(t, env, "serve", "--agents", "127.0.0.1:0", "--jobs", "127.0.0.1:0", "--router", "127.0.0.1:0")
	address := regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(server.says(t, "msg=listening door=router"))[1]
	got := make(chan map[string]any, 10)
	connectClient(t, address, "Notebook", "I take notes.", func(m map[string]any) frame {
		got <- m
		kind, payload := "ack", map[string]any{}
		if strings.Contains(m["text"].(string), "secret") {
			kind, payload = "reject", map[string]any{"reason": "I keep no secrets"}
		}
		return frame{"response", map[string]any{"messageId": m["id"], "type": kind, "payload": payload}}
	})
	res, code = run()
	require.Equal(t, exit.Passed, code)
	require.InDelta(t, 1, *res.Summary.Routing.Accuracy, 0)
	require.Equal(t, 3, res.Summary.Routing.Trials)
	require.Len(t, got, 2)
	m := <-got
	require.Equal(t, "take a note: buy milk", m["text"])
	require.Equal(t, "voice", m["metadata"].(map[string]any)["inputMethod"])
	require.InDelta(t, 0.75, m["metadata"].(map[string]any)["confidence"], 0)

	require.NoError(t, server.Process.Signal(syscall.SIGTERM))
	within(t, "waza serve", func() { server.exitCode(t) })
}
