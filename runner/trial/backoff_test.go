package trial

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The pause before a retry used to double without limit, and overflowed.
func TestBackoff(t *testing.T) {
	t.Parallel()
	require.Equal(t, retryDelay, backoff(1))
	require.Equal(t, 2*retryDelay, backoff(2))
	for _, n := range []int{10, 50, 64, 1 << 40} {
		require.Equal(t, maxRetryDelay, backoff(n))
	}
}
