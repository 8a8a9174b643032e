package fleet_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/fleet"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// awaitOrders waits until a team's stream has n orders.
func (s *site) awaitOrders(n uint64) jetstream.Stream {
	s.Helper()
	conn, err := s.connect(s.Context(), s.address(""))
	require.NoError(s, err)
	s.Cleanup(conn.Close)
	for {
		stream, err := conn.JetStream().Stream(s.Context(), fleet.NamesOf("waza").Orders)
		if err == nil && stream.CachedInfo().State.Msgs == n {
			return stream
		}
		require.NoError(s, s.Context().Err())
	}
}

// Orders that the stream has lost are published again.
func TestLostOrders(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for orders that are missed, for a quarter of a minute")
	}
	s := newSite(t, func(context.Context, *executor.Trial) (string, error) { return "done", nil })
	live := runnertest.Start(t, s.owner(t.TempDir()), fmt.Sprintf(twoTasks, 2), s.request(""))
	require.NoError(t, s.awaitOrders(4).Purge(t.Context()))
	s.work(1, "", nil)
	<-live.Done()
	require.Equal(t, 4, runnertest.ResultOf(t, live).Summary.Trials.Passed)
}

// A run whose streams are gone ends with an error.
func TestLostStreams(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for streams that are missed, for a quarter of a minute")
	}
	s := newSite(t, func(context.Context, *executor.Trial) (string, error) { return "done", nil })
	live := runnertest.Start(t, s.owner(t.TempDir()), fmt.Sprintf(twoTasks, 2), s.request(""))
	s.awaitOrders(4)
	conn, err := s.connect(t.Context(), s.address(""))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.JetStream().DeleteStream(t.Context(), fleet.NamesOf("waza").Orders))
	<-live.Done()
	res := runnertest.ResultOf(t, live)
	require.Equal(t, record.StatusFailed, res.Status)
}
