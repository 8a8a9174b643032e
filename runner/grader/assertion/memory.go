package assertion

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

const (
	// maxHeap is the most memory that a worker for JavaScript can use. hardLimit applies where
	// the system enforces limits (see restrict). On every system the worker also watches its own
	// heap and ends when the heap exceeds maxHeap.
	maxHeap   = 512 << 20
	hardLimit = 768 << 20
	// watchPause is the time between two checks of the heap.
	watchPause = 20 * time.Millisecond
)

// A memoryWatch ends the process when it takes too much memory. Its goroutine checks the heap
// while an assertion is evaluated, and ends with the process. The process has to end because
// nothing can interrupt the engine within one operation.
type memoryWatch struct {
	busy atomic.Bool
	wake chan struct{}
}

func watchMemory() *memoryWatch {
	debug.SetMaxStack(64 << 20)
	w := &memoryWatch{wake: make(chan struct{}, 1)}
	go w.run()
	return w
}

// watch starts the checks and returns a function that ends them.
func (w *memoryWatch) watch() (done func()) {
	w.busy.Store(true)
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return func() { w.busy.Store(false) }
}

func (w *memoryWatch) run() {
	for range w.wake {
		for w.busy.Load() {
			if heapBytes() > maxHeap {
				runtime.GC() // garbage does not count
			}
			if heapBytes() > maxHeap {
				quit(fmt.Sprintf("it took more than %d MiB of memory", maxHeap>>20))
			}
			time.Sleep(watchPause)
		}
	}
}

func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
