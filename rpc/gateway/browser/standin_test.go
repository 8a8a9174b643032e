package browser_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/rpc/client/extension"
	executor "waza/runner/executor/browser"
)

// waza's own extension executes trials, each in its own session.
func TestStandIn(t *testing.T) {
	t.Parallel()
	model := newScripted(t)
	server, url := openServer(t, nil, model.client)
	calls := make(chan *extension.Call, 10)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- extension.Run(ctx, extension.Options{
			URL: url[:len(url)-len("?version=1.0.0&extension_id=")], ID: uuid(1),
			Do: func(_ context.Context, c *extension.Call) (any, error) {
				calls <- c
				return map[string]string{"title": "Example"}, nil
			},
		})
	}()
	var sessions []string
	for range 2 {
		slot, err := server.Hub().Reserve(t.Context(), &executor.Want{ID: "t"})
		require.NoError(t, err)
		require.Equal(t, uuid(1), slot.ExtensionID())
		answer, err := slot.Execute(t.Context(), &executor.Command{
			Text: `tool navigate {"url":"https://example.com"} ; results`,
			Made: &executor.Made{Instructions: "x", Capabilities: []string{"navigate"}},
		}, nil)
		require.NoError(t, err)
		require.Equal(t, `{"title":"Example"}`, answer.Text)
		call := <-calls
		require.Equal(t, "navigate", call.Tool)
		require.JSONEq(t, `{"url":"https://example.com"}`, string(call.Params))
		sessions = append(sessions, call.Session)
		slot.Release()
	}
	require.NotEqual(t, sessions[0], sessions[1])
	cancel()
	<-ended
}
