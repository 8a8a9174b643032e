package provider

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Limits creates and finds the limiter of a provider and model. Runs that use the same model
// share a limiter, so a process has one Limits. The zero value is ready for use. It is safe for
// concurrent use.
type Limits struct {
	mu      sync.Mutex // guards the fields below; locked before the mutex of a limiter
	by      map[string]*Limiter
	sharing Sharing // nil if the limiters are not shared with other processes
}

// Get returns the limiter with that name, such as an address and a model.
func (l *Limits) Get(name string) *Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by = map[string]*Limiter{}
	}
	if l.by[name] == nil {
		l.by[name] = newLimiter()
		l.by[name].share(name, l.sharing)
	}
	return l.by[name]
}

const (
	firstWindow = 4   // concurrent calls at first
	maxWindow   = 256 // maximum of concurrent calls
	// minPause is the pause after the first rejection that requests none. Each further rejection
	// without a success in between doubles it.
	minPause = 500 * time.Millisecond
	maxPause = 30 * time.Second
	// giveUp is how long before its deadline a call stops waiting for its turn. The call then
	// ends with a fault of the provider instead of a timeout of the agent.
	giveUp = 500 * time.Millisecond
)

// Limiter limits the number of concurrent calls to what the provider accepts. It finds that
// number like TCP does:
//
//	window
//	  │      ╱╲  ╱╲  ╱     doubles while all is well (slow start), until it
//	  │    ╱   ╲╱  ╲╱      first meets a limit; then grows by one per window
//	  │  ╱|                and halves at each rejection
//	  └──────────────────
//
// After a rejection it sends nothing for as long as the provider requests. Then it sends a
// single probe, and others follow only after the probe succeeds. A provider that rejects
// everything for a time therefore gets only a handful of requests, however many calls wait.
// Shared limiters do this together, see [Sharing]. A Limiter is safe for concurrent use and has
// no goroutines.
type Limiter struct {
	mu       sync.Mutex // guards the fields below
	window   float64
	limit    float64 // window at which slow start ends
	running  int
	epoch    int // number of times the window was halved
	fresh    int // running calls that started in this epoch
	rejected int // rejections since the last success
	until    time.Time
	timer    *time.Timer // wakes waiting calls at the end of the pause
	waiting  []*turn
	shared   shared
}

func newLimiter() *Limiter { return &Limiter{window: firstWindow, limit: maxWindow} }

// turn is the place of a waiting call in the queue.
type turn struct {
	come  chan struct{} // closed when it is the call's turn
	epoch int           // epoch of the turn
}

// slot is the permission for one call.
type slot struct {
	limiter *Limiter
	epoch   int
}

// verdict is the result of a call for the limiter.
type verdict int

const (
	neither verdict = iota // a fault that does not depend on the load
	success
	rejection
)

// acquire waits for the turn of a call. The caller must call done. The error is the cause of
// ctx, or [Throttled] if the turn will not come in time.
func (l *Limiter) acquire(ctx context.Context) (*slot, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	turn := &turn{come: make(chan struct{})}
	l.mu.Lock()
	l.waiting = append(l.waiting, turn)
	l.wakeLocked()
	l.mu.Unlock()
	late, stop := lateness(ctx)
	defer stop()
	select {
	case <-turn.come:
		return &slot{l, turn.epoch}, nil
	case <-ctx.Done():
		l.leave(turn)
		return nil, context.Cause(ctx)
	case <-late:
		l.leave(turn)
		return nil, lateError()
	}
}

// lateError is the error of a call that did not get its turn in time.
func lateError() *Error {
	return &Error{Kind: Throttled, Message: "the provider is overloaded: the call did not get its turn in time"}
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

// leave gives up a turn.
func (l *Limiter) leave(t *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiting, t); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		return
	}
	l.endLocked(t.epoch) // the turn had just come
}

// done ends a call. after is the pause that the provider requests.
func (s *slot) done(v verdict, after time.Duration) {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	switch v {
	case success:
		l.growLocked(s.epoch)
	case rejection:
		l.shrinkLocked(s.epoch, after)
	}
	l.endLocked(s.epoch)
}

// endLocked removes a call that started in an epoch from the count.
func (l *Limiter) endLocked(epoch int) {
	l.running--
	if epoch == l.epoch {
		l.fresh--
	}
	l.wakeLocked()
}

// growLocked widens the window. It ignores calls that started before the last rejection, because
// they do not show that the overload is over.
func (l *Limiter) growLocked(epoch int) {
	if epoch == l.epoch && l.rejected > 0 {
		l.recoverLocked()
		l.shared.succeeded()
	}
	if float64(l.running) < l.window/2 {
		return // an unused window does not show that it can grow
	}
	if l.window < l.limit {
		l.window++
	} else {
		l.window += 1 / l.window
	}
	l.window = min(l.window, maxWindow)
}

// recoverLocked allows concurrent calls again after a successful probe.
func (l *Limiter) recoverLocked() {
	l.rejected = 0
	l.shared.forget()
}

// shrinkLocked halves the window, but only once for all calls that ran together.
func (l *Limiter) shrinkLocked(epoch int, after time.Duration) {
	pause, halved := after, epoch == l.epoch
	if halved {
		l.halveLocked()
		if pause == 0 {
			pause = min(maxPause, minPause<<min(l.rejected-1, 10))
			pause += rand.N(pause / 4)
		}
	}
	l.pauseLocked(pause)
	l.shared.announce(pause, halved)
}

// halveLocked starts a new epoch with half of the window.
func (l *Limiter) halveLocked() {
	l.epoch++
	l.fresh = 0
	l.rejected++
	if l.window > 1 {
		l.window = max(1, l.window/2)
		l.limit = max(2, l.window)
	}
}

func (l *Limiter) pauseLocked(pause time.Duration) {
	if until := time.Now().Add(pause); until.After(l.until) {
		l.until = until
	}
}

// wakeLocked wakes as many waiting calls as can run now, oldest first.
func (l *Limiter) wakeLocked() {
	if len(l.waiting) == 0 {
		return
	}
	if pause := time.Until(l.until); pause > 0 {
		l.wakeLater(pause)
		return
	}
	for len(l.waiting) > 0 && l.mayRunLocked() {
		l.waiting[0].epoch = l.epoch
		close(l.waiting[0].come)
		l.waiting = l.waiting[1:]
		l.running++
		l.fresh++
	}
}

// mayRunLocked reports whether another call can run now. After a rejection only a probe can,
// regardless of calls that are still running.
func (l *Limiter) mayRunLocked() bool {
	if l.rejected == 0 {
		return l.running < int(l.window)
	}
	return l.fresh == 0 && l.shared.mayProbe()
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

// wait returns the rest of the pause.
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
