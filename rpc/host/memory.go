package host

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// garbage is how much the heap of a large process can grow beyond its live objects before the
	// runtime collects garbage. The runtime's own default is as much as there are live objects,
	// for a run of a million trials 35 MB. Most of these are places in the journal, arrays without
	// pointers, which a collection does not read: to collect more often costs little.
	garbage = 8 << 20
	// spare is for the growth of stacks and tables, and for fragments.
	spare = 2 << 20
	// limitStep rounds the limit. A new limit stops all goroutines for a moment.
	limitStep = 1 << 20
)

// LimitGarbage makes the runtime collect garbage more often in a process with many live objects,
// and return more unused memory to the system, from now on. The variables GOGC and GOMEMLIMIT of the
// runtime take precedence.
func LimitGarbage() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		afterNextGC(&memoryLimit{})
	}
}

// A memoryLimit follows the size of the process: it is set after each collection of garbage. Only
// the goroutine of finalizers uses it.
type memoryLimit struct{ bytes uint64 }

// afterNextGC adjusts the limit after the next collection, and every later one: the runtime
// finalizes an object that nothing refers to when it has collected garbage.
func afterNextGC(l *memoryLimit) {
	runtime.SetFinalizer(l, func(l *memoryLimit) {
		l.adjust()
		afterNextGC(l)
	})
}

func (l *memoryLimit) adjust() {
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(s)
	live, total, objects, free, released := s[0].Value.Uint64(), s[1].Value.Uint64(), s[2].Value.Uint64(), s[3].Value.Uint64(), s[4].Value.Uint64()
	if bytes := limitFor(live, total-objects-free-released); bytes != l.bytes {
		l.bytes = bytes
		debug.SetMemoryLimit(int64(bytes))
	}
}

// limitFor returns the limit for so many bytes of live objects, and others that the runtime uses.
func limitFor(live, others uint64) uint64 {
	return (live + others + garbage + spare + limitStep - 1) / limitStep * limitStep
}
