package serve

import (
	"context"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"waza/rpc/gateway/echo"
)

// TestFurtherDoor opens a door of a further protocol beside the others.
func TestFurtherDoor(t *testing.T) {
	t.Parallel()
	local := echo.Defaults()
	local.Listen = "127.0.0.1:0"
	s, stop := served(t, func(s *Server) (protocol, error) { return echo.New(local, s.o.Log, s.metrics) })

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	client, _, err := websocket.Dial(ctx, "ws://"+s.addresses["echo"].String(), nil)
	require.NoError(t, err)
	require.NoError(t, client.Write(ctx, websocket.MessageText, []byte("hello")))
	_, msg, err := client.Read(ctx)
	require.NoError(t, err)
	require.Equal(t, "hello", string(msg))
	all, err := testutil.GatherAndCount(s.metrics, "waza_door_connections")
	require.NoError(t, err)
	require.Equal(t, len(protocols)+1, all, "it is measured as all others")

	closed := make(chan error, 1)
	go func() {
		_, _, err := client.Read(ctx)
		closed <- err
	}()
	stop()
	require.Equal(t, websocket.StatusGoingAway, websocket.CloseStatus(<-closed))
}
