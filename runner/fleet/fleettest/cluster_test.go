package fleettest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waza/runner/fleet/fleettest"
)

// Messages that a stream with three replicas acknowledged survive the death of any server.
func TestClusterKeepsMessages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts processes and elects leaders, which takes some seconds")
	}
	servers := fleettest.Cluster(t)
	require.Equal(t, 3, servers.Len())
	require.Equal(t, 2, strings.Count(servers.URL(), ","))
	conn, err := nats.Connect(servers.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	require.NoError(t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Replicas: 3})
	require.NoError(t, err)

	publish := func(id string) {
		require.Eventually(t, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err := js.Publish(ctx, "s", nil, jetstream.WithMsgID(id))
			return err == nil
		}, time.Minute, 20*time.Millisecond)
	}
	publish("before")
	for i := range servers.Len() {
		servers.Kill(i)
		servers.Kill(i)
		publish("without " + string(rune('0'+i)))
		servers.Start(i)
		servers.Start(i)
	}
	servers.Stop(1)
	publish("after")
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		stream, err := js.Stream(ctx, "S")
		return err == nil && stream.CachedInfo().State.Msgs == 5
	}, time.Minute, 20*time.Millisecond)
}
