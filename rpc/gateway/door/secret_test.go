package door_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/rpc/gateway/door"
)

func TestDelaysGrowWithWrongTokens(t *testing.T) {
	t.Parallel()
	var g door.Guesses
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
	require.True(t, door.SameSecret("token", "token"))
	for _, given := range []string{"", "toke", "tokens", "Token"} {
		require.False(t, door.SameSecret(given, "token"))
	}
}
