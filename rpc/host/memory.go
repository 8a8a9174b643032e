package host

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

const (
	// manyLive is how many bytes of live objects are many. Fewer may grow to twice as many before
	// the runtime collects garbage, which is its own default: collecting more often would cost a
	// trial with a large output half as much processor time again.
	manyLive = 24 << 20
	// fewGarbage is how much garbage there may be beside many live objects, in percent of these.
	// Most of them are places of trials in the journal, arrays without pointers, which a collection
	// does not read: to collect more often costs little.
	fewGarbage = 50
	// usualGarbage is the runtime's own default.
	usualGarbage = 100
)

// LimitGarbage makes the runtime collect garbage more often while a process has many live objects,
// from now on. The variable GOGC of the runtime takes precedence.
func LimitGarbage() { limitGarbage(new(atomic.Bool)) }

// limitGarbage is like [LimitGarbage], until over is set.
func limitGarbage(over *atomic.Bool) {
	if os.Getenv("GOGC") == "" {
		afterNextGC(&garbageLimit{over: over, percent: usualGarbage})
	}
}

// A garbageLimit follows the live objects of the process: it is set after each collection of
// garbage. Only the goroutine of finalizers uses it.
type garbageLimit struct {
	over    *atomic.Bool
	percent int
}

// afterNextGC adjusts the limit after the next collection, and every later one: the runtime
// finalizes an object that nothing refers to when it has collected garbage.
func afterNextGC(l *garbageLimit) {
	runtime.SetFinalizer(l, func(l *garbageLimit) {
		if !l.over.Load() {
			l.adjust()
			afterNextGC(l)
		}
	})
}

func (l *garbageLimit) adjust() {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	percent := usualGarbage
	if s[0].Value.Uint64() > manyLive {
		percent = fewGarbage
	}
	if percent != l.percent { // changing it stops all goroutines for a moment
		l.percent = percent
		debug.SetGCPercent(percent)
	}
}
