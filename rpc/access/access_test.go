package access_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/rpc/access"
)

// Wrong tokens were not delayed.
func TestAttackDelaysGrowWithWrongTokens(t *testing.T) {
	t.Parallel()
	var g access.Guesses
	now := time.Unix(1_000_000, 0)
	var got []time.Duration
	for range 8 {
		got = append(got, g.Wrong(now)/time.Millisecond)
		now = now.Add(time.Second)
	}
	require.Equal(t, []time.Duration{100, 200, 400, 800, 1600, 3000, 3000, 3000}, got)
	require.Equal(t, 100*time.Millisecond, g.Wrong(now.Add(2*time.Minute)))
}

func TestSameSecret(t *testing.T) {
	t.Parallel()
	require.True(t, access.SameSecret("token", "token"))
	for _, given := range []string{"", "toke", "tokens", "Token"} {
		require.False(t, access.SameSecret(given, "token"))
	}
}

func TestIsLoopback(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST:80": true, "localhost.": true, "127.0.0.1": true, "127.9.9.9:1": true,
		"[::1]": true, "[::1]:80": true, "::1": true,
		"[::ffff:127.0.0.1]:1": true, "": false, "example.com": false, "localhost.example.com": false, "10.0.0.1": false,
		"0.0.0.0": false, "[::]:1": false,
	} {
		require.Equal(t, want, access.IsLoopback(host), host)
	}
}
