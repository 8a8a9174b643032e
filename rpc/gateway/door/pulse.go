package door

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// Idle is when and how an idle connection is closed.
type Idle struct {
	// After is how long the client may be silent; 0 is for ever.
	After time.Duration
	// Code of the close frame; 0 means 1001.
	Code int
	// Reason in the close frame; "" means a text with After.
	Reason string
}

// pulse is whether a client is there: its timers for silence and for pings. They only
// look at the clock that [pulse.beats] sets, which costs less per message than setting a
// timer.
type pulse struct {
	out    *outbox
	config *Config
	since  time.Time
	heard  atomic.Int64 // clock when the client was last heard
	deaf   atomic.Bool  // nothing is read from the client now, for reasons of the door

	mu       sync.Mutex // guards the fields below; never held while outbox is called
	stopped  bool
	idle     *time.Timer // nil without
	beat     *time.Timer // nil without
	pingedAt int64       // clock of the ping that is to be answered; 0 for none
}

// clock is the time since the connection was accepted, in nanoseconds.
func (p *pulse) clock() int64 { return int64(time.Since(p.since)) }

// beats notes that the client was heard.
func (p *pulse) beats() { p.heard.Store(p.clock()) }

// lastHeard is the clock when the client was last heard. While nothing is read, it is now.
func (p *pulse) lastHeard() int64 {
	if p.deaf.Load() {
		p.beats()
	}
	return p.heard.Load()
}

// start starts the timers of the Config.
func (p *pulse) start(idleCode int) {
	p.setIdle(Idle{After: time.Duration(p.config.IdleTimeout), Code: idleCode})
	p.mu.Lock()
	defer p.mu.Unlock()
	if every := time.Duration(p.config.Heartbeat); every > 0 {
		p.beat = time.AfterFunc(every, p.heartbeat)
	}
}

// stop stops the timers.
func (p *pulse) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	for _, timer := range []*time.Timer{p.idle, p.beat} {
		if timer != nil {
			timer.Stop()
		}
	}
}

func (p *pulse) setIdle(idle Idle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle != nil {
		p.idle.Stop()
		p.idle = nil
	}
	if p.stopped || idle.After <= 0 {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(idle.After, func() {
		left := idle.After - time.Duration(p.clock()-p.lastHeard())
		if left <= 0 {
			p.out.end(ending{code: cmp.Or(idle.Code, int(websocket.StatusGoingAway)),
				reason: cmp.Or(idle.Reason, fmt.Sprintf("no message or ping for %v", idle.After))})
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.idle == timer && !p.stopped {
			timer.Reset(left)
		}
	})
	p.idle = timer
}

// heartbeat sends a ping, or looks for the answer to the last.
func (p *pulse) heartbeat() {
	if p.out.isEnding() {
		return
	}
	every, patience := time.Duration(p.config.Heartbeat), time.Duration(p.config.PongTimeout)
	p.mu.Lock()
	answered := p.pingedAt == 0 || p.lastHeard() >= p.pingedAt
	wait, ping, dead := cmp.Or(patience, every), true, false
	switch {
	case !answered && patience > 0:
		dead = true
	case answered && p.pingedAt != 0 && patience > 0 && patience < every:
		p.pingedAt, wait, ping = 0, every-patience, false
	default:
		p.pingedAt = max(1, p.clock())
	}
	if !p.stopped && !dead {
		p.beat.Reset(wait)
	}
	p.mu.Unlock()
	switch {
	case dead:
		p.out.end(ending{code: int(websocket.StatusGoingAway), reason: fmt.Sprintf("no pong within %v", patience)})
	case ping:
		p.out.ping()
	}
}
