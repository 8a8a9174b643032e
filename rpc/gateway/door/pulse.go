package door

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// Idle configures when and how an idle connection is closed.
type Idle struct {
	// After is how long the client can be silent; 0 means no limit.
	After time.Duration
	// Code is the close code; 0 means 1001.
	Code int
	// Reason is the reason in the close frame; "" means a text that contains After.
	Reason string
}

// pulse detects whether a client is alive, with timers for silence and for pings. The timers
// only compare the clock that [pulse.beats] sets, which costs less per message than resetting a
// timer.
type pulse struct {
	out        *outbox
	config     *Config
	cuts       bool // drop a client that does not answer a ping
	since      time.Time
	heard      atomic.Int64 // clock of the last sign of life
	readPaused atomic.Bool  // the door itself has paused reading

	mu       sync.Mutex // guards the fields below; not held during calls of outbox
	stopped  bool
	idle     *time.Timer // nil without a timeout
	beat     *time.Timer // nil without pings
	pingedAt int64       // clock of the unanswered ping; 0 means none
}

// clock returns the time since the connection was accepted, in nanoseconds.
func (p *pulse) clock() int64 { return int64(time.Since(p.since)) }

// beats records a sign of life of the client.
func (p *pulse) beats() { p.heard.Store(p.clock()) }

// lastHeard returns the clock of the last sign of life. While reading is paused, that is now.
func (p *pulse) lastHeard() int64 {
	if p.readPaused.Load() {
		p.beats()
	}
	return p.heard.Load()
}

// start starts the timers of the Config.
func (p *pulse) start() {
	p.setIdle(Idle{After: time.Duration(p.config.IdleTimeout)})
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

// heartbeat sends a ping, or checks for the answer to the last one.
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
	case dead && p.cuts:
		p.out.end(ending{reason: "no pong"})
	case dead:
		p.out.end(ending{code: int(websocket.StatusGoingAway), reason: fmt.Sprintf("no pong within %v", patience)})
	case ping:
		p.out.ping()
	}
}
