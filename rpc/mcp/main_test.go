package mcp

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/rpc"
	"waza/runner"
	"waza/runner/attack/agent"
)

func TestMain(m *testing.M) {
	agent.Main()
	goleak.VerifyTestMain(m)
}

// newTestServer returns a server for a directory, with its own records. It ends with the test.
func newTestServer(t *testing.T, dir string) *server { return serverOf(t, dir, t.TempDir()) }

// serverOf returns a server with a state directory.
func serverOf(t *testing.T, dir, state string) *server {
	t.Helper()
	r, err := runner.New(runner.Options{StateDir: state})
	require.NoError(t, err)
	daemon := newDaemon(t, r)
	s, err := newServer(Options{Dir: dir, Daemon: daemon, Runner: r})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
		defer cancel()
		s.leave()
		s.daemon.close(ctx)
		require.NoError(t, daemon.Shutdown(ctx))
	})
	return s
}

func newDaemon(t *testing.T, r *runner.Runner) Daemon {
	t.Helper()
	daemon, err := rpc.New(rpc.Options{Runner: r})
	require.NoError(t, err)
	return daemon
}
