package mcp

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/runner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newTestServer returns a server for a directory, with its own records. It ends with the test.
func newTestServer(t *testing.T, dir string) *server { return serverOf(t, dir, t.TempDir()) }

// serverOf returns a server with a state directory.
func serverOf(t *testing.T, dir, state string) *server {
	t.Helper()
	r, err := runner.New(runner.Options{StateDir: state})
	require.NoError(t, err)
	s, err := newServer(Options{Dir: dir, Runner: r})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
		defer cancel()
		s.leave()
		s.daemon.close(ctx)
		require.NoError(t, s.rpc.Shutdown(ctx))
	})
	return s
}
