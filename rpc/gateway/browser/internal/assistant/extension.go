package assistant

import (
	"slices"

	"github.com/google/uuid"

	"waza/rpc/gateway/internal/lease"
	"waza/runner/executor/browser"
)

// The parts of the pool of extensions, whose places are those of trials.
type (
	pool   = lease.Pool[string, *browser.Want, *extension, *slot]
	member = lease.Member[string, *browser.Want, *extension, *slot]
)

// extension is the set of connections with an id. Assistants.mu guards it.
type extension struct {
	id      string
	member  *member  // reservation by a trial
	clients []Client // oldest first; empty while it is disconnected
	busy    int      // number of active commands of the user that use it
}

// rules returns the rules of the pool: a trial has a whole extension, which it gets in order of
// arrival and keeps until it releases it.
func (a *Assistants) rules() lease.Rules[string, *browser.Want, *extension, *slot] {
	return lease.Rules[string, *browser.Want, *extension, *slot]{
		Key: func(w *browser.Want) string { return w.Extension },
		Fit: func(w *browser.Want, x *extension) lease.Fit {
			if x.clientFor(w) == nil {
				return lease.Never
			}
			return lease.Able
		},
		Room: func(x *extension) int {
			if a.closing || x.busy > 0 {
				return 0
			}
			return 1 - len(x.member.Places())
		},
		Before: func(x, y *extension) bool { return x.id < y.id },
		Give: func(m *member, w *browser.Want) *slot {
			return &slot{owner: a, extension: m.Offer, client: m.Offer.clientFor(w), attempt: w.ID, session: uuid.NewString()}
		},
		Absent: func(x *extension) bool { return len(x.clients) == 0 && x.busy == 0 },
	}
}

// extensionLocked returns the extension with an id; nil when it does not exist.
func (a *Assistants) extensionLocked(id string) *extension {
	if m := a.pool.Member(id); m != nil {
		return m.Offer
	}
	return nil
}

// slot returns the reservation of the extension; nil when it has none.
func (x *extension) slot() *slot {
	if places := x.member.Places(); len(places) > 0 {
		return places[0]
	}
	return nil
}

// has reports whether the client is connected. It is false for a missing extension.
func (x *extension) has(c Client) bool { return x != nil && slices.Contains(x.clients, c) }

// client returns the client that gets the messages for an extension: the preferred one if it is
// connected, or else the newest; nil when none is connected.
func (x *extension) client(preferred Client) Client {
	switch {
	case x == nil || len(x.clients) == 0:
		return nil
	case preferred != nil && x.has(preferred):
		return preferred
	}
	return x.clients[len(x.clients)-1]
}

// Connect adds a client. The client gets the results of its extension's commands from while it
// was disconnected, and commands that wait for the extension start.
func (a *Assistants) Connect(c Client) {
	for _, started := range a.connect(c) {
		started.await()
	}
}

// connect returns the commands that have started.
func (a *Assistants) connect(c Client) (started []*command) {
	a.mu.Lock()
	defer a.mu.Unlock()
	x := a.extensionLocked(c.ExtensionID())
	if x == nil {
		x = &extension{id: c.ExtensionID()}
		x.member = a.pool.Join(x.id, x)
	}
	a.pool.Change(x.member, func() { x.clients = append(x.clients, c) })
	a.reportLocked(x, c)
	for _, as := range a.roster.sorted() {
		open := as.current != nil && as.current.ExtensionID == x.id
		if open {
			c.Happened(as.current.statusLocked())
			a.sendUseLocked(as.current.use, c)
		}
		for _, w := range as.waiting {
			if w.ExtensionID == x.id {
				c.Happened(w.statusLocked())
				w.expireLocked()
				open = true
			}
		}
		if open {
			c.Happened(QueueChanged{as.queueLocked()})
		}
		started = append(started, as.pumpLocked())
	}
	a.pool.Offer(x.member)
	return started
}

// reportLocked sends a client the unreported results of its extension's commands.
func (a *Assistants) reportLocked(x *extension, c Client) {
	a.unreported = slices.DeleteFunc(a.unreported, func(cmd *command) bool {
		if cmd.ExtensionID != x.id {
			return false
		}
		sendEnd(c, cmd.Command, false, "")
		cmd.Reported = true
		cmd.saveLocked(func(f *Fault) {
			if f != nil {
				c.Happened(Failure{CommandID: cmd.ID, Fault: f})
			}
		})
		return true
	})
}

// Disconnect removes a client. Its commands continue with another client of its extension, or
// when the client reconnects. Its trial ends.
func (a *Assistants) Disconnect(c Client) {
	a.mu.Lock()
	defer a.mu.Unlock()
	x := a.extensionLocked(c.ExtensionID())
	if x == nil {
		return
	}
	a.pool.Change(x.member, func() {
		x.clients = slices.DeleteFunc(x.clients, func(other Client) bool { return other == c })
	})
	if s := x.slot(); s != nil && s.client == c {
		s.endCommandLocked()
	}
	a.pool.Forget(x.member)
}
