package door

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The rate limits of clients with ever new names do not fill the memory.
func TestAttackNewNames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := NewRates(10, 10)
		stays := r.first("stays")
		stays.allow()
		for i := range 100_000 {
			l := r.rename(r.first(""), "", strconv.Itoa(i))
			l.allow()
			r.leave(l)
			time.Sleep(100 * time.Millisecond)
		}
		require.LessOrEqual(t, len(r.byName), 2*keptLimiters)
		require.Same(t, stays, r.byName["stays"])
	})
}

// Clients with ever new ids do not fill the memory, and do not affect others.
func TestAttackManyIDs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := NewRates(10, 11)
		for i := range 100_000 {
			_, ok := a.Allow(strconv.Itoa(i))
			require.True(t, ok)
			time.Sleep(10 * time.Millisecond)
		}
		require.LessOrEqual(t, len(a.byName), 3*keptLimiters)
		for range 11 {
			_, ok := a.Allow("again")
			require.True(t, ok)
		}
		after, ok := a.Allow("again")
		require.False(t, ok)
		require.Equal(t, 6*time.Second, after.Round(time.Millisecond))
		time.Sleep(after)
		_, ok = a.Allow("again")
		require.True(t, ok)
	})
}
