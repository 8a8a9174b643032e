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
		r := newRates(10)
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
