package host

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The limit must always leave room for garbage: at the limit, the runtime would do little else than
// collect it.
func TestLimitFor(t *testing.T) {
	t.Parallel()
	for live, limit := range map[uint64]uint64{0: 14 << 20, 1: 15 << 20, 32 << 20: 46 << 20, 1 << 40: 1<<40 + 14<<20} {
		require.Equal(t, limit, limitFor(live, 4<<20), "%d bytes", live)
	}
}

func TestLimitGarbageFollowsTheHeap(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	LimitGarbage()
	reaches := func(least, most int64) {
		t.Helper()
		require.Eventually(t, func() bool {
			runtime.GC()
			limit := debug.SetMemoryLimit(-1)
			return least <= limit && limit <= most
		}, 10*time.Second, time.Millisecond)
	}
	reaches(garbage, math.MaxInt64-1)
	live := make([]byte, 64<<20)
	reaches(64<<20+garbage, math.MaxInt64-1)
	runtime.KeepAlive(live)
	reaches(garbage, 64<<20)
}

func TestLimitGarbageKeepsTheUsersLimit(t *testing.T) {
	t.Setenv("GOGC", "50")
	before := debug.SetMemoryLimit(-1)
	LimitGarbage()
	runtime.GC()
	runtime.GC()
	require.Equal(t, before, debug.SetMemoryLimit(-1))
}
