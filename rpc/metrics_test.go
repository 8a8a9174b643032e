package rpc

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"waza/runner"
)

// Metrics without a token were served under any name that a web page gave this machine.
func TestAttackMetricsHost(t *testing.T) {
	t.Parallel()
	r, err := runner.New(runner.Options{StateDir: t.TempDir()})
	require.NoError(t, err)
	s, err := New(Options{Runner: r, Metrics: prometheus.NewRegistry()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Shutdown(context.Background())) })
	l, err := s.ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	defer s.serveMetrics(l)()
	for host, want := range map[string]int{
		"localhost": http.StatusOK, "localhost:1": http.StatusOK, "127.0.0.1": http.StatusOK, "[::1]:9": http.StatusOK, "[::1]": http.StatusOK,
		"evil.example": http.StatusForbidden, "evil.example:80": http.StatusForbidden,
		"localhost.evil.example": http.StatusForbidden, "10.0.0.1": http.StatusForbidden,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+"/metrics", http.NoBody)
		require.NoError(t, err)
		req.Host = host
		resp, err := http.DefaultTransport.RoundTrip(req)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, resp.StatusCode, host)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}
