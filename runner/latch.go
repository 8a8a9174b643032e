package runner

import "sync"

// latch is set once, by anyone. It owns the channel that is closed then.
type latch struct {
	once sync.Once
	done chan struct{} // closed when the latch is set
}

func newLatch() *latch { return &latch{done: make(chan struct{})} }

func (l *latch) set() { l.once.Do(func() { close(l.done) }) }

func (l *latch) isSet() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}
