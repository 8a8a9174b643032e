// Package fleettest runs NATS servers for tests. Server runs a server in the test process, and
// Cluster runs three as processes that can be killed. All have JetStream, listen on the loopback
// interface and end with their test.
package fleettest

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"
)

// startTime is how long a server can take until it accepts clients. It is long because machines
// can be busy.
const startTime = 3 * time.Minute

// Server starts a server with JetStream in this process, with its store in a temporary directory
// of the test, and returns its URL. The server ends with the test, after clean-ups that were
// registered later.
func Server(t testing.TB) string {
	t.Helper()
	return Start(t, &server.Options{}).ClientURL()
}

// Start starts a server with these options in this process. It isolates the server: it sets the
// loopback interface, no log and no signal handling. By default the server has a free port and a
// store in a temporary directory of the test. The server ends with the test.
func Start(t testing.TB, options *server.Options) *server.Server {
	t.Helper()
	options.Host = "127.0.0.1"
	if options.Port == 0 {
		options.Port = server.RANDOM_PORT
	}
	options.JetStream = true
	if options.StoreDir == "" {
		options.StoreDir = t.TempDir()
	}
	options.NoLog = true
	options.NoSigs = true
	s, err := server.NewServer(options)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	require.True(t, s.ReadyForConnections(startTime), "the NATS server is not ready")
	return s
}
