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
	// maxHeap is how much memory a worker for JavaScript may use. Where the system
	// enforces a limit (see restrict), that is hardLimit; everywhere, the worker
	// looks at its own heap and ends when it has more.
	maxHeap   = 512 << 20
	hardLimit = 768 << 20
	// watchPause is how often it looks.
	watchPause = 20 * time.Millisecond
)

// memoryWatch ends the process when it takes too much memory. Its goroutine looks
// while an assertion is evaluated, and ends with the process: nothing can interrupt
// the engine within one operation.
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

// during makes the watch look until the function that it returns is called.
func (w *memoryWatch) during() (done func()) {
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
				runtime.GC() // garbage is not counted
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
