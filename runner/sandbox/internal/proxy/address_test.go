package proxy_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/sandbox/internal/proxy"
)

func TestAddressesOfThisMachine(t *testing.T) {
	t.Parallel()
	addrs, err := net.InterfaceAddrs()
	require.NoError(t, err)
	require.NotEmpty(t, addrs)
	for _, a := range addrs {
		own, ok := netip.AddrFromSlice(a.(*net.IPNet).IP)
		require.True(t, ok)
		require.True(t, proxy.IsOfThisMachine(own.Unmap()), a)
	}
	require.False(t, proxy.IsOfThisMachine(netip.MustParseAddr("93.184.216.34")))
}
