package lease

import (
	"sync"
	"time"
)

// Timer calls a function under a mutex, which also guards the timer. The zero value does not run.
type Timer struct{ timer *time.Timer }

// Running reports whether the function is still to be called.
func (t *Timer) Running() bool { return t.timer != nil }

// Set calls do after d while it holds mu, unless the timer is set again or stopped by then.
func (t *Timer) Set(mu sync.Locker, d time.Duration, do func()) {
	t.Stop()
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		mu.Lock()
		defer mu.Unlock()
		if t.timer != timer {
			return
		}
		t.timer = nil
		do()
	})
	t.timer = timer
}

// Stop stops the timer. If its function already waits for the mutex, it is not called.
func (t *Timer) Stop() {
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}
