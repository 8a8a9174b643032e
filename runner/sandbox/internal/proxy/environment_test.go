package proxy_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/sandbox/internal/proxy"
)

func TestEnvironment(t *testing.T) {
	t.Parallel()
	require.ElementsMatch(t, []string{
		"HTTP_PROXY=http://127.0.0.1:3128", "http_proxy=http://127.0.0.1:3128",
		"HTTPS_PROXY=http://127.0.0.1:3128", "https_proxy=http://127.0.0.1:3128",
		"ALL_PROXY=http://127.0.0.1:3128", "all_proxy=http://127.0.0.1:3128",
		"GRPC_PROXY=http://127.0.0.1:3128", "grpc_proxy=http://127.0.0.1:3128",
		"NO_PROXY=localhost,127.0.0.1,::1", "no_proxy=localhost,127.0.0.1,::1",
		"NODE_USE_ENV_PROXY=1", "RSYNC_PROXY=127.0.0.1:3128",
	}, proxy.Environment(netip.MustParseAddrPort("127.0.0.1:3128")))
}
