package provider

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Limits finds the limiter of a provider and model. What several runs ask of the
// same model shares one, so a process has one Limits. The zero value is ready
// for use; it is safe for concurrent use.
type Limits struct {
	mu sync.Mutex // guards by
	by map[string]*Limiter
}

// Get returns the limiter of that name, such as an address and a model.
func (l *Limits) Get(name string) *Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by = map[string]*Limiter{}
	}
	if l.by[name] == nil {
		l.by[name] = newLimiter()
	}
	return l.by[name]
}

const (
	firstWindow = 4   // calls at once, to begin with
	maxWindow   = 256 // and at most
	// minPause is how long nothing is sent after the first rejection that names
	// no time; each further one without a success between doubles it.
	minPause = 500 * time.Millisecond
	maxPause = 30 * time.Second
	// giveUp is how long before its deadline a call stops waiting for its turn,
	// so that it ends as the provider's fault and not as the agent's slowness.
	giveUp = 500 * time.Millisecond
)

// Limiter lets as many calls run at once as the provider takes, which it finds
// out as TCP does:
//
//	window
//	  │      ╱╲  ╱╲  ╱     doubles while all is well (slow start), until it
//	  │    ╱   ╲╱  ╲╱      first meets a limit; then grows by one per window
//	  │  ╱|                and halves at each rejection
//	  └──────────────────
//
// After a rejection nothing is sent for a while, as long as the provider asks;
// then a single call tries the water, and only its success lets others follow.
// So a provider that rejects all for a time costs a handful of requests, however
// many calls wait. It is safe for concurrent use and has no goroutines.
type Limiter struct {
	mu       sync.Mutex // guards the fields below
	window   float64
	limit    float64 // where slow start ends
	running  int
	epoch    int // counts the times the window was halved
	rejected int // rejections since the last success
	until    time.Time
	timer    *time.Timer // wakes the waiting when the pause is over
	waiting  []chan struct{}
}

func newLimiter() *Limiter { return &Limiter{window: firstWindow, limit: maxWindow} }

// slot is the leave to make one call.
type slot struct {
	limiter *Limiter
	epoch   int
}

// verdict is what became of a call, as far as the limiter cares.
type verdict int

const (
	neither verdict = iota // a fault that says nothing about the load
	success
	rejection
)

// acquire waits for the turn of a call. The caller must call done. The error is
// the cause of ctx, or [Throttled] when the turn will not come in time.
func (l *Limiter) acquire(ctx context.Context) (*slot, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	turn := make(chan struct{})
	l.mu.Lock()
	l.waiting = append(l.waiting, turn)
	l.wakeLocked()
	l.mu.Unlock()
	late, stop := lateness(ctx)
	defer stop()
	select {
	case <-turn:
		l.mu.Lock()
		defer l.mu.Unlock()
		return &slot{l, l.epoch}, nil
	case <-ctx.Done():
		l.leave(turn)
		return nil, context.Cause(ctx)
	case <-late:
		l.leave(turn)
		return nil, &Error{Kind: Throttled, Message: "the provider is too busy: the call did not get its turn in time"}
	}
}

// lateness returns a channel that fires when it is too late to keep waiting.
func lateness(ctx context.Context) (<-chan time.Time, func() bool) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return nil, func() bool { return true }
	}
	left := time.Until(deadline)
	timer := time.NewTimer(left - min(giveUp, left/10))
	return timer.C, timer.Stop
}

// leave takes back a turn that is not wanted any more.
func (l *Limiter) leave(turn chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiting, turn); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		return
	}
	l.running-- // it had just been granted
	l.wakeLocked()
}

// done ends a call. after is how long the provider asks to wait.
func (s *slot) done(v verdict, after time.Duration) {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	switch v {
	case success:
		l.growLocked()
	case rejection:
		l.shrinkLocked(s.epoch, after)
	}
	l.running--
	l.wakeLocked()
}

func (l *Limiter) growLocked() {
	l.rejected = 0
	if float64(l.running) < l.window/2 {
		return // what is not used says nothing about how far it could go
	}
	if l.window < l.limit {
		l.window++
	} else {
		l.window += 1 / l.window
	}
	l.window = min(l.window, maxWindow)
}

// shrinkLocked halves the window, but once only for all calls that ran together.
func (l *Limiter) shrinkLocked(epoch int, after time.Duration) {
	pause := after
	if epoch == l.epoch {
		l.epoch++
		l.rejected++
		if l.window > 1 {
			l.window = max(1, l.window/2)
			l.limit = max(2, l.window)
		}
		if pause == 0 {
			pause = min(maxPause, minPause<<min(l.rejected-1, 10))
			pause += rand.N(pause / 4)
		}
	}
	if until := time.Now().Add(pause); until.After(l.until) {
		l.until = until
	}
}

// wakeLocked gives those who wait longest their turn, as many as may run now.
func (l *Limiter) wakeLocked() {
	if len(l.waiting) == 0 {
		return
	}
	if pause := time.Until(l.until); pause > 0 {
		l.wakeLater(pause)
		return
	}
	may := int(l.window)
	if l.rejected > 0 {
		may = 1
	}
	for l.running < may && len(l.waiting) > 0 {
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
		l.running++
	}
}

func (l *Limiter) wakeLater(pause time.Duration) {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.timer = time.AfterFunc(pause, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.wakeLocked()
	})
}

// wait returns how long the pause still takes.
func (l *Limiter) wait() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, time.Until(l.until))
}

func (l *Limiter) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("%d of %d running, %d waiting", l.running, int(l.window), len(l.waiting))
}
