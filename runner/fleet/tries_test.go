package fleet_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"waza/runner/fleet"
	"waza/runner/runnertest"
)

// A message that is lost on its way to workers does not count as a lost worker. Once, three
// messages that were lost with their connection ended the trial in error.
func TestLostMessages(t *testing.T) {
	t.Parallel()
	s := newSite(t, says)
	live := runnertest.Start(t, s.owner(t.TempDir()), fmt.Sprintf(twoTasks, 1), s.request(""))
	conn, err := s.connect(t.Context(), s.address(""))
	require.NoError(t, err)
	defer conn.Close()
	names := fleet.NamesOf("waza")

	for delivered := uint64(0); delivered <= fleet.Deadly; {
		c, err := conn.JetStream().Consumer(t.Context(), names.Orders, "executor-agent")
		if err != nil {
			continue // the owner is about to make it
		}
		msg, err := c.Next()
		if errors.Is(err, nats.ErrNoResponders) {
			continue // the server is about to answer for the new consumer
		}
		require.NoError(t, err)
		meta, err := msg.Metadata()
		require.NoError(t, err)
		delivered = meta.NumDelivered
		require.NoError(t, msg.NakWithDelay(time.Millisecond))
	}
	s.work(1, "", nil)
	requirePassed(t, live, 2)
}
