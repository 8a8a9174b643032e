package router_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"waza/rpc/gateway/router"
	"waza/rpc/gateway/store"
	"waza/runner/routing"
)

// BenchmarkMessage measures a message from its sender to one of a hundred clients and back,
// including the store.
func BenchmarkMessage(b *testing.B) {
	db, err := store.Open(b.TempDir())
	require.NoError(b, err)
	defer db.Close()
	c := router.Defaults()
	c.Listen, c.MessagesPerMinute = "127.0.0.1:0", 0
	s, err := router.New(c, router.Options{Store: store.MessagesOf(db)})
	require.NoError(b, err)
	addr, err := s.Door().Listen()
	require.NoError(b, err)
	served := make(chan error, 1)
	go func() { served <- s.Door().Serve(context.Background()) }()
	var clients sync.WaitGroup
	for i := range 100 {
		ws, _, err := websocket.Dial(b.Context(), "ws://"+addr.String(), nil)
		require.NoError(b, err)
		name := fmt.Sprintf("client-%d", i)
		require.NoError(b, ws.Write(b.Context(), websocket.MessageText,
			[]byte(`{"type":"registration","payload":{"name":"`+name+`","description":"Takes anything."}}`)))
		_, _, err = ws.Read(b.Context())
		require.NoError(b, err)
		clients.Go(func() {
			for {
				_, data, err := ws.Read(context.Background())
				var m struct{ Payload struct{ ID string } }
				if err != nil || json.Unmarshal(data, &m) != nil {
					return
				}
				_ = ws.Write(context.Background(), websocket.MessageText,
					[]byte(`{"type":"response","payload":{"messageId":"`+m.Payload.ID+`","type":"ack","payload":{}}}`))
			}
		})
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		r, err := s.Messenger().Send(b.Context(), &routing.Message{Text: fmt.Sprintf("client-%d: hello", i%100)})
		require.NoError(b, err)
		require.Equal(b, routing.Taken, r.Status)
	}
	b.StopTimer()
	require.NoError(b, s.Door().Shutdown(b.Context()))
	require.NoError(b, <-served)
	s.Close()
	clients.Wait()
}
