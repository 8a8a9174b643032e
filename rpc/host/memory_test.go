package host

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// gcPercent returns the present limit of garbage, in percent of the live objects.
func gcPercent() uint64 {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// collect collects garbage, and returns when the finalizers of that have run.
func collect() {
	over := make(chan struct{})
	runtime.SetFinalizer(&struct{ text string }{"garbage"}, func(*struct{ text string }) { close(over) })
	runtime.GC()
	<-over
}

func TestLimitGarbageFollowsTheHeap(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(usualGarbage)
	var over atomic.Bool
	t.Cleanup(func() {
		over.Store(true)
		debug.SetGCPercent(before)
	})
	limitGarbage(&over)
	reaches := func(want uint64) {
		t.Helper()
		require.Eventually(t, func() bool {
			collect()
			return gcPercent() == want
		}, 10*time.Second, time.Millisecond)
	}
	live := make([]byte, 2*manyLive)
	reaches(fewGarbage)
	runtime.KeepAlive(live)
	reaches(usualGarbage)
}

func TestLimitGarbageKeepsTheUsersLimit(t *testing.T) {
	t.Setenv("GOGC", "70")
	before := gcPercent()
	var over atomic.Bool
	defer over.Store(true)
	limitGarbage(&over)
	live := make([]byte, 2*manyLive)
	collect()
	collect()
	runtime.KeepAlive(live)
	require.Equal(t, before, gcPercent())
}
