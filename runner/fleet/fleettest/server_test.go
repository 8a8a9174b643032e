package fleettest_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waza/runner/fleet/fleettest"
)

func TestServerStores(t *testing.T) {
	t.Parallel()
	conn, err := nats.Connect(fleettest.Server(t))
	require.NoError(t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}})
	require.NoError(t, err)
	_, err = js.Publish(t.Context(), "s.one", []byte("hello"))
	require.NoError(t, err)
	message, err := stream.GetLastMsgForSubject(t.Context(), "s.one")
	require.NoError(t, err)
	require.Equal(t, "hello", string(message.Data))
}

func TestServersAreApart(t *testing.T) {
	t.Parallel()
	require.NotEqual(t, fleettest.Server(t), fleettest.Server(t))
}
