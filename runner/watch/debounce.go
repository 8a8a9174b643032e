package watch

import (
	"time"
)

// The delay between a change and the reaction to it. A watch waits until nothing has changed for
// watchQuiet, because editors save in several steps and may save many files at once. It waits at
// most watchMost if changes do not stop.
const (
	watchQuiet = 100 * time.Millisecond
	watchMost  = time.Second
)

// debounce combines many changes into one. Only one goroutine may use it.
type debounce struct {
	quiet, most time.Duration
	first       time.Time   // time of the first unreported change; zero without changes
	timer       *time.Timer // nil before the first change
}

// touch records a change.
func (d *debounce) touch() {
	now := time.Now()
	if d.first.IsZero() {
		d.first = now
	}
	wait := max(0, min(d.quiet, d.first.Add(d.most).Sub(now)))
	if d.timer == nil {
		d.timer = time.NewTimer(wait)
	} else {
		d.timer.Reset(wait)
	}
}

// due returns a channel that is ready when the changes should be processed; call done then.
func (d *debounce) due() <-chan time.Time {
	if d.timer == nil {
		return nil
	}
	return d.timer.C
}

func (d *debounce) done() { d.first = time.Time{} }

func (d *debounce) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}
