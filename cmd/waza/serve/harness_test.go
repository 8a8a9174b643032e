package serve

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/cmd/waza/config"
	"waza/cmd/waza/state"
	"waza/runner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// served serves all doors, and further ones, at free ports of this machine. The test ends
// the server, or stop does before.
func served(tb testing.TB, further ...opener) (s *Server, stop func()) {
	tb.Helper()
	c := config.Default()
	for _, d := range c.Doors() {
		if d.Config != nil {
			d.Config.Listen = "127.0.0.1:0"
		}
	}
	o := Options{
		Config: c, StateDir: tb.TempDir(), Version: "test", Log: slog.New(slog.DiscardHandler),
		NewRunner: func(o state.RecordOptions) (*runner.Runner, *prometheus.Registry, error) {
			rn, err := runner.New(runner.Options{StateDir: tb.TempDir(), Gate: o.Gate, Logger: o.Log})
			return rn, prometheus.NewRegistry(), err
		},
	}
	s, err := openAll(context.Background(), o, slices.Concat(protocols, further))
	require.NoError(tb, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := s.Serve(ctx)
		ended <- err
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(tb, <-ended)
	})
	tb.Cleanup(stop)
	return s, stop
}
