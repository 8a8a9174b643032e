package browser_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"waza/rpc/gateway/browser"
	"waza/rpc/gateway/store"
	executor "waza/runner/executor/browser"
	"waza/runner/provider"
)

// openServer serves a door until the test ends, and returns its address.
func openServer(
	t *testing.T, change func(c *browser.Config),
	model func(ctx context.Context, name string) (provider.Client, error),
) (*browser.Server, string) {
	t.Helper()
	s, err := store.Open(t.TempDir())
	require.NoError(t, err)
	c := browser.Defaults()
	c.Listen = "127.0.0.1:0"
	if change != nil {
		change(&c)
	}
	server, err := browser.New(c, browser.Options{Store: s, Model: model})
	require.NoError(t, err)
	addr, err := server.Door().Listen()
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- server.Door().Serve(context.Background()) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second) // some clients do not read
		defer cancel()
		_ = server.Door().Shutdown(ctx)
		require.NoError(t, <-served)
		server.Close()
		require.NoError(t, s.Close())
	})
	return server, "ws://" + addr.String() + "/ws?version=1.0.0&extension_id="
}

// dial connects an extension and reads the first message.
func dial(t *testing.T, url string) *websocket.Conn {
	t.Helper()
	c, _, err := websocket.Dial(t.Context(), url, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.CloseNow() })
	c.SetReadLimit(-1)
	require.Equal(t, "connected", read(t, c)["type"])
	return c
}

func read(t *testing.T, c *websocket.Conn) map[string]any {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, data, err := c.Read(ctx)
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.Unmarshal(data, &m))
	return m
}

func write(t *testing.T, c *websocket.Conn, format string, args ...any) {
	t.Helper()
	require.NoError(t, c.Write(t.Context(), websocket.MessageText, fmt.Appendf(nil, format, args...)))
}

// create creates and activates an assistant.
func create(t *testing.T, c *websocket.Conn) string {
	t.Helper()
	write(t, c, `{"type":"create_assistant","id":"1","timestamp":1,"payload":{"name":"Bob","instructions":"You are `+
		`Bob.","capabilities":["navigate"]}}`)
	require.Equal(t, "ack", read(t, c)["type"])
	id := read(t, c)["payload"].(map[string]any)["assistant"].(map[string]any)["id"].(string)
	write(t, c, `{"type":"activate_assistant","id":"2","timestamp":1,"payload":{"assistant_id":%q}}`, id)
	require.Equal(t, "ack", read(t, c)["type"])
	require.Equal(t, "assistant_updated", read(t, c)["type"])
	return id
}

func uuid(n int) string { return fmt.Sprintf("550e8400-e29b-41d4-a716-%012d", n) }

// Five extensions that send continuously do not block other extensions.
func TestAttackFloodsOfExtensions(t *testing.T) {
	t.Parallel()
	_, url := openServer(t, nil, nil)
	good := dial(t, url+uuid(0))
	bob := create(t, good)
	done := make(chan struct{})
	for i := 1; i <= 5; i++ {
		flood := dial(t, url+uuid(i))
		go func() { // it does not read, either
			for n := 0; ; n++ {
				ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
				err := flood.Write(ctx, websocket.MessageText,
					fmt.Appendf(nil, `{"type":"command","id":"f%d","timestamp":1,"payload":{"text":%q,"assistant_id":%q}}`, n,
						strings.Repeat("x", 5000), bob))
				cancel()
				select {
				case <-done:
					return
				default:
				}
				if err != nil {
					return
				}
			}
		}()
	}
	defer close(done)
	var took []time.Duration
	for i := range 90 {
		start := time.Now()
		id := fmt.Sprint("p", i)
		write(t, good, `{"type":"ping","id":%q,"timestamp":1}`, id)
		for m := read(t, good); m["correlation_id"] != id; m = read(t, good) {
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	require.Less(t, took[len(took)/2], 500*time.Millisecond)
	// The queue of the assistant does not exceed its limit.
	write(t, good, `{"type":"get_queue_status","id":"q","timestamp":1,"payload":{"assistant_id":%q}}`, bob)
	require.Equal(t, "ack", read(t, good)["type"])
	require.LessOrEqual(t, len(read(t, good)["payload"].(map[string]any)["queued"].([]any)), 11)
}

// An extension that does not read its messages is disconnected; another one gets its trial.
func TestAttackExtensionThatStopsReading(t *testing.T) {
	t.Parallel()
	model := newScripted(t)
	server, url := openServer(t, func(c *browser.Config) { c.SendQueueBytes = 200_000 }, model.client)
	c := dial(t, url+uuid(1)+"&evaluation=1")
	slot, err := server.Hub().Reserve(t.Context(), &executor.Want{ID: "t"})
	require.NoError(t, err)
	defer slot.Release()
	require.Equal(t, uuid(1), slot.ExtensionID())
	// It requests long lists and does not read them.
	for i := range 20 {
		write(t, dial(t, url+uuid(2+i)),
			`{"type":"create_assistant","id":"1","timestamp":1,"payload":{"name":"n%d","instructions":%q,"capabilities":["navigate"]}}`,
			i, strings.Repeat("y", 10_000))
	}
	ended := make(chan error, 1)
	go func() {
		_, err := slot.Execute(context.Background(),
			&executor.Command{Text: "wait one", Made: &executor.Made{Instructions: "x", Capabilities: []string{"navigate"}}},
			nil)
		ended <- err
	}()
	for i := range 95 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_ = c.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"type":"list_assistants","id":"l%d","timestamp":1}`, i))
		cancel()
	}
	select {
	case err := <-ended:
		require.ErrorContains(t, err, "the extension disconnected")
	case <-time.After(patience):
		require.Fail(t, "the trial did not end")
	}
}

// The model gets results of 10 MB shortened. Larger messages end the connection.
func TestAttackLargeResults(t *testing.T) {
	t.Parallel()
	model := newScripted(t)
	_, url := openServer(t, nil, model.client)
	c := dial(t, url+uuid(1))
	bob := create(t, c)
	write(t, c, `{"type":"command","id":"c","timestamp":1,"payload":{"text":"tool navigate {\"url\":\"https://x\"} `+
		`; say done","assistant_id":%q}}`,
		bob)
	for m := read(t, c); m["type"] != "tool_execution"; m = read(t, c) {
	}
	deep := strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000)
	write(t, c, `{"type":"tool_result","id":"r","timestamp":1,"correlation_id":"c","payload":{"status":"success",`+
		`"result":{"deep":%s,"long":%q}}}`,
		deep, strings.Repeat("z", 9_000_000))
	for {
		if m := read(t, c); m["type"] == "status_update" {
			require.Equal(t, "completed", m["payload"].(map[string]any)["status"])
			break
		}
	}
	asked := model.Requests()
	require.Less(t, len(asked[len(asked)-1].Results[0]), 60_000)
	write(t, c, `{"type":"ping","id":%q,"timestamp":1}`, strings.Repeat("z", 11_000_000))
	for {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, _, err := c.Read(ctx)
		cancel()
		if err != nil {
			require.Equal(t, websocket.StatusMessageTooBig, websocket.CloseStatus(err), err)
			return
		}
	}
}
