package hub

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"waza/rpc/gateway/internal/lease"
	"waza/runner/executor/remote"
)

// The parts of the pool of agents.
type (
	pool   = lease.Pool[classKey, *wanted, *agent, *slot]
	member = lease.Member[classKey, *wanted, *agent, *slot]
	waiter = lease.Waiter[*wanted, *slot]
)

// wanted is the want of a caller.
type wanted struct {
	*remote.Want
	refused []registration // agents that refused it since they registered, in a fixed order
}

// rules returns the rules of the pool of agents. Agents that reported to lack a tool for one
// evaluation are the last resort for others with that tool.
func (h *Hub) rules(grace time.Duration) lease.Rules[classKey, *wanted, *agent, *slot] {
	return lease.Rules[classKey, *wanted, *agent, *slot]{
		Key:  (*wanted).key,
		Fit:  (*wanted).fit,
		Room: (*agent).room,
		Rank: func(w *wanted) int { return rank(w.Priority) },
		Give: func(m *member, w *wanted) *slot {
			return &slot{hub: h, clientID: m.ID, want: w.Want, held: true, agent: m.Offer}
		},
		Lost:    h.lostLocked,
		Nobody:  func(w *wanted) error { return &remote.NoToolError{Tool: w.Tool} },
		Changed: func(a *agent) { h.board.Changed(a) },
		Absent:  func(a *agent) bool { return a.client == nil },
		Forgotten: func(a *agent) {
			if a.Answered > 0 {
				forget(h.tallies, mostTallies)
				h.tallies[a.ClientID] = a.Answered
			}
		},
		Grace: grace,
	}
}

func (w *wanted) fit(a *agent) lease.Fit {
	switch {
	case !w.Fits(&a.Agent):
		return lease.Never
	case slices.Contains(w.refused, a.registered):
		return lease.Refused
	case slices.Contains(a.Lacks, w.Tool):
		return lease.LastResort
	}
	return lease.Able
}

// rank returns the rank of a priority: 0 is served first.
func rank(priority string) int {
	switch priority {
	case "high":
		return 0
	case "low":
		return 2
	}
	return 1
}

// classKey identifies the wants that fit the same agents.
type classKey struct{ tool, more, refused string }

func (w *wanted) key() classKey {
	key := classKey{tool: w.Tool}
	if len(w.Tools)+len(w.Clients) > 0 {
		key.more = strings.Join(w.Tools, "\x00") + "\x01" + strings.Join(w.Clients, "\x00")
	}
	for _, r := range w.refused {
		key.refused += strconv.FormatUint(r.number, 36) + " "
	}
	return key
}

// refusedLocked returns the agents that refused an evaluation since they registered, in a fixed
// order.
func (h *Hub) refusedLocked(id string) (list []registration) {
	for _, r := range h.refused[id] {
		if a := h.agentLocked(r.clientID); a != nil && a.registered == r {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b registration) int { return cmp.Compare(a.number, b.number) })
	return list
}

// seatLocked gives a caller room at once, or lets it wait.
func (h *Hub) seatLocked(w *waiter) {
	w.Want.refused = h.refusedLocked(w.Want.ID)
	h.pool.Seat(w)
}
