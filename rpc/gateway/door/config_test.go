package door_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/rpc/gateway/door"
)

func TestDurationIsWrittenAsItIsRead(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0s": 0, "10s": 10 * time.Second, "1m": time.Minute, "1m30s": 90 * time.Second, "10m": 10 * time.Minute,
		"1h": time.Hour, "1h0m10s": time.Hour + 10*time.Second, "2160h": 90 * 24 * time.Hour, "1.5s": 1500 * time.Millisecond,
	} {
		require.Equal(t, want, door.Duration(d).String())
		var back door.Duration
		require.NoError(t, back.UnmarshalText([]byte(want)))
		require.Equal(t, d, time.Duration(back))
	}
}
