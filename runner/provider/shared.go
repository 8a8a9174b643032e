package provider

import "time"

// Sharing lets limiters with the same name in several processes act as one. A pause requested
// from one of them applies to all, and after it one process sends the probe. If other processes
// cannot be reached, a limiter decides alone. Package waza/runner/fleet/internal/limits implements it for
// fleets.
//
// It learns through a [Peer], which it creates for each limiter, and answers with the exported
// methods of [Limiter].
type Sharing interface {
	// Join starts to share a limiter. It must not block, and must call the limiter only after it
	// has returned.
	Join(name string, limiter *Limiter) Peer
}

// Peer represents the limiters with one name in other processes. A limiter calls its methods
// while it is locked, so they must neither block nor call the limiter.
type Peer interface {
	// Rejected reports that the provider rejected a call and nothing is sent during the pause.
	// halved reports whether the window shrank, which happens once for all calls that ran
	// together. The answer is a call of Announced.
	Rejected(pause time.Duration, halved bool)
	// Succeeded reports that the probe succeeded.
	Succeeded()
	// Ask requests the permission to send a probe, because a call waits and the pause is over.
	// The answer is a call of Grant, Adopt or Resume, as soon as possible.
	Ask()
}

// shared is the state of a limiter that it shares with other processes. Without a peer, the
// limiter decides alone. The limiter's mutex guards it.
type shared struct {
	peer       Peer
	epoch      uint64 // last rejection in any process for which the window shrank
	announcing bool   // the window shrank, and the other processes do not have the reason yet
	asked      bool
	granted    bool // this process can send the probe
}

// announce reports a rejection to the peer. halved reports whether the window shrank.
func (s *shared) announce(pause time.Duration, halved bool) {
	if s.peer == nil || pause <= 0 {
		return
	}
	s.forget()
	s.announcing = s.announcing || halved
	s.peer.Rejected(pause, halved)
}

func (s *shared) succeeded() {
	if s.peer != nil {
		s.peer.Succeeded()
	}
}

// forget drops the permission to send a probe, and the request for it.
func (s *shared) forget() { s.asked, s.granted = false, false }

// mayProbe reports whether this process can send the probe, and requests permission if
// necessary.
func (s *shared) mayProbe() bool {
	if s.peer == nil || s.granted {
		return true
	}
	if !s.asked {
		s.asked = true
		s.peer.Ask()
	}
	return false
}

// Share lets the present and future limiters of this process act as one with those of other
// processes. It returns false if they are shared already. The caller calls stop to end it.
func (l *Limits) Share(s Sharing) (stop func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sharing != nil {
		return func() {}, false
	}
	l.setSharingLocked(s)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.setSharingLocked(nil)
	}, true
}

func (l *Limits) setSharingLocked(s Sharing) {
	l.sharing = s
	for name, limiter := range l.by {
		limiter.share(name, s)
	}
}

// share starts to share the limiter; a nil s ends it.
func (l *Limiter) share(name string, s Sharing) {
	var peer Peer
	if s != nil {
		peer = s.Join(name, l)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shared = shared{peer: peer}
	l.wakeLocked()
}

// Announced confirms that other processes received the rejection that the limiter reported.
// epoch is its number. If a different process reported the same rejection earlier, it has that
// number.
func (l *Limiter) Announced(epoch uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shared.announcing = false
	l.shared.epoch = epoch
}

// Adopt applies a rejection in a different process: nothing is sent during the pause, nor
// afterwards before Grant or Resume. The window shrinks once for each epoch.
func (l *Limiter) Adopt(epoch uint64, pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if epoch != l.shared.epoch && !l.shared.announcing {
		l.halveLocked()
	}
	l.shared.epoch = epoch
	l.rejected = max(1, l.rejected)
	l.shared.forget()
	l.pauseLocked(pause)
	l.wakeLocked()
}

// Resume reports that the probe of a different process succeeded, so that all processes can
// continue.
func (l *Limiter) Resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shared.announcing {
		return // a newer rejection applies
	}
	l.recoverLocked()
	l.wakeLocked()
}

// Grant permits the limiter to send one call as a probe. It returns false if no call waits; the
// permission is void then.
func (l *Limiter) Grant() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shared.forget()
	if l.rejected == 0 || len(l.waiting) == 0 || time.Until(l.until) > 0 {
		return false
	}
	l.shared.granted = true
	l.wakeLocked()
	return true
}

// Probing reports whether the limiter still uses the permission to send a probe. If not, the
// permission is void.
func (l *Limiter) Probing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shared.granted = l.shared.granted && (l.fresh > 0 || len(l.waiting) > 0)
	return l.shared.granted
}
