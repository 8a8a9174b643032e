package rpc

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// There was no delay after wrong tokens.
func TestAttackDelaysGrowWithWrongTokens(t *testing.T) {
	t.Parallel()
	var g guesses
	now := time.Unix(1_000_000, 0)
	var got []time.Duration
	for range 8 {
		got = append(got, g.wrong(now)/time.Millisecond)
		now = now.Add(time.Second)
	}
	require.Equal(t, []time.Duration{100, 200, 400, 800, 1600, 3000, 3000, 3000}, got)
	require.Equal(t, firstDelay, g.wrong(now.Add(2*forgetAfter)))
}
