package watch

import (
	"time"
)

// How long a watch waits after a change for further ones: until nothing has
// changed for watchQuiet, for editors save in several steps, and many files are
// saved at once; and at most for watchMost, should it never be quiet.
const (
	watchQuiet = 100 * time.Millisecond
	watchMost  = time.Second
)

// debounce makes one of many changes. It belongs to one goroutine.
type debounce struct {
	quiet, most time.Duration
	first       time.Time   // of the changes that were not told of; zero when there are none
	timer       *time.Timer // nil before the first change
}

// touch notes a change.
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

// due is ready when the changes are to be looked at; call done then.
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
