package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"waza/rpc/gateway/internal/lease"
	"waza/runner/executor"
	"waza/runner/executor/remote"
)

// slot is the room for one evaluation at an agent. It implements [remote.Slot].
//
//	reserved ──Evaluate──► asked ──answer──► answered ──Release──► free
//	                         │
//	                         └─ctx ends, Release──► lingers ──answer, or timeout──► free
//
// When the agent leaves for good or refuses the evaluation, the call of Evaluate ends. When it
// leaves, its room is gone, too.
type slot struct {
	hub      *Hub
	clientID string
	want     *remote.Want

	agent     *agent // nil when the room is free again or lost
	why       string // reason for the loss
	held      bool   // a caller has not called Release yet
	asked     bool   // the agent has not answered yet
	eval      *remote.Evaluation
	requestID string
	lost      int     // connections that ended with an unreadable message, which may have been the answer
	caller    *caller // the call that waits for the answer
	lingerEnd lease.Timer

	// A slot without an agent returns an answer that arrived without a waiting caller: early, or
	// the stored answer with the id kept.
	early *remote.Answer
	kept  string
}

// caller is a call of Evaluate.
type caller struct {
	outcome chan outcome       // has a capacity of one
	status  chan remote.Status // updates before the outcome; has a capacity of mostStatus
}

type outcome struct {
	answer *remote.Answer
	err    error
}

// Reserve implements [remote.Hub].
func (h *Hub) Reserve(ctx context.Context, want *remote.Want) (remote.Slot, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	h.mu.Lock()
	w := h.pool.Ask(&wanted{Want: want})
	h.awaited[want.ID] = w
	h.admitLocked(w)
	h.mu.Unlock()
	s, err := h.pool.Wait(ctx, w)
	h.mu.Lock()
	if h.awaited[want.ID] == w {
		delete(h.awaited, want.ID)
	}
	h.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return s, nil
}

// admitLocked serves a caller, or lets it wait.
func (h *Hub) admitLocked(w *waiter) {
	id := w.Want.ID
	if clientID, ok := h.kept[id]; ok {
		delete(h.kept, id)
		h.pool.Serve(w, &slot{hub: h, clientID: clientID, want: w.Want.Want, held: true, kept: id})
		return
	}
	if s := h.adoptLocked(w.Want.Want); s != nil {
		h.pool.Serve(w, s)
		return
	}
	if clientID, ok := h.early[id]; ok && h.earlyEnd.Running() {
		a := h.agentLocked(clientID)
		if a == nil || !a.ready {
			h.pool.Park(w, clientID)
			return
		}
		delete(h.early, id)
		if a.room() > 0 && w.Want.Fits(&a.Agent) {
			h.pool.Give(a.member, w)
			return
		}
	}
	h.seatLocked(w)
}

// adoptLocked finds an agent that still works on the evaluation for a caller that is gone.
func (h *Hub) adoptLocked(want *remote.Want) *slot {
	for _, s := range h.asked[want.ID] {
		if s.held || s.agent == nil || !s.agent.ready || !want.Fits(&s.agent.Agent) {
			continue
		}
		s.lingerEnd.Stop()
		s.held, s.want = true, want
		h.ended.remove(want.ID)
		return s
	}
	return nil
}

// leaveLocked ends what the hub does for a slot that its agent no longer has.
func (h *Hub) leaveLocked(s *slot) {
	h.settleLocked(s)
	s.lingerEnd.Stop()
	s.agent = nil
}

// vacateLocked removes the slot from its agent.
func (h *Hub) vacateLocked(s *slot) {
	if a := s.agent; a != nil {
		h.leaveLocked(s)
		h.pool.Vacate(a.member, s)
	}
}

// giveBackLocked offers the room of a slot to other waiters.
func (h *Hub) giveBackLocked(s *slot) {
	if a := s.agent; a != nil {
		h.leaveLocked(s)
		h.pool.GiveBack(a.member, s)
	}
}

// lostLocked sends the caller of a slot without an agent back to the queue.
func (h *Hub) lostLocked(s *slot, why string) {
	s.why = why
	h.leaveLocked(s)
	s.end(outcome{err: again(s.clientID, why)})
}

// settleLocked stops waiting for the agent's answer.
func (h *Hub) settleLocked(s *slot) {
	if !s.asked {
		return
	}
	s.asked = false
	id := s.eval.ID
	if others := slices.DeleteFunc(h.asked[id], func(other *slot) bool { return other == s }); len(others) > 0 {
		h.asked[id] = others
	} else {
		delete(h.asked, id)
	}
}

// end ends the call of Evaluate if one is active.
func (s *slot) end(o outcome) {
	if s.caller != nil {
		s.caller.outcome <- o
		s.caller = nil
	}
}

func again(clientID, why string) error {
	return &executor.RetryError{Reason: fmt.Sprintf("agent %s: %s", clientID, why)}
}

// ClientID implements [remote.Slot].
func (s *slot) ClientID() string { return s.clientID }

// Release implements [remote.Slot].
func (s *slot) Release() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if !s.held {
		return
	}
	s.held = false
	switch {
	case s.kept != "":
		h.kept[s.kept] = s.clientID
	case s.agent == nil:
	case s.asked && s.agent.client != nil:
		s.lingerEnd.Set(&h.mu, h.linger, func() {
			h.archive.unassign(s.eval.ID)
			h.giveBackLocked(s)
		})
	default:
		h.giveBackLocked(s)
	}
}

// Evaluate implements [remote.Slot].
func (s *slot) Evaluate(ctx context.Context, e *remote.Evaluation, status func(remote.Status)) (*remote.Answer, error) {
	h := s.hub
	if answer := s.answerBefore(ctx, e.ID); answer != nil {
		return answer, nil
	}
	c := &caller{outcome: make(chan outcome, 1), status: make(chan remote.Status, mostStatus)}
	h.mu.Lock()
	conn, err := h.askLocked(s, e, c)
	requestID := s.requestID
	h.mu.Unlock()
	if err != nil {
		return nil, err
	}
	h.archive.assign(e.ID, s.clientID)
	if conn != nil {
		h.send(conn, s, requestID, e)
	}
	o := s.wait(ctx, c, status)
	// The run that takes over from a caller that is gone asks for the same agent.
	if o.err == nil || !h.callerGone(ctx) {
		h.archive.unassign(e.ID)
	}
	h.count.outcome(o)
	return o.answer, o.err
}

// askLocked records that c waits for the agent's answer, and returns the connection for the
// request. The connection is nil when the agent is disconnected or was already asked.
func (h *Hub) askLocked(s *slot, e *remote.Evaluation, c *caller) (Conn, error) {
	a := s.agent
	switch {
	case !s.held || s.caller != nil:
		return nil, errors.New("the slot is released or in use")
	case a == nil:
		return nil, again(s.clientID, cmp.Or(s.why, "the room was released"))
	case a.paused:
		return nil, again(s.clientID, "the agent is overloaded")
	case !s.want.Fits(&a.Agent):
		return nil, again(s.clientID, "the agent lacks the tool")
	}
	s.caller = c
	if s.asked && s.eval.ID == e.ID {
		return nil, nil
	}
	h.settleLocked(s)
	s.eval, s.requestID, s.asked, s.lost = e, h.tags.add(e.ID), true, 0
	h.asked[e.ID] = append(h.asked[e.ID], s)
	h.ended.remove(e.ID)
	if !a.ready {
		return nil, nil
	}
	return a.client.conn, nil
}

// send sends the request to the agent. An evaluation that cannot be sent to any agent ends the
// call.
func (h *Hub) send(conn Conn, s *slot, id string, e *remote.Evaluation) {
	err := conn.Send(id, e)
	if err == nil {
		return
	}
	h.log.Error("evaluation could not be sent", "evaluation", e.ID, "client", s.clientID, "error", err)
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.asked && s.requestID == id {
		h.settleLocked(s)
		s.end(outcome{err: err})
	}
}

// wait returns the outcome of the call. Only wait calls status, which can be nil.
func (s *slot) wait(ctx context.Context, c *caller, status func(remote.Status)) outcome {
	if status == nil {
		status = func(remote.Status) {}
	}
	for {
		select {
		case update := <-c.status:
			status(update)
		case o := <-c.outcome:
			for len(c.status) > 0 {
				status(<-c.status)
			}
			return o
		case <-ctx.Done():
			return s.abandon(ctx, c)
		}
	}
}

// callerGone reports whether the call's context ended because the caller's process has ended.
func (h *Hub) callerGone(ctx context.Context) bool {
	return ctx.Err() != nil && (h.leaving.Load() || errors.Is(context.Cause(ctx), remote.ErrCallerGone))
}

// abandon ends a call after its context has ended.
func (s *slot) abandon(ctx context.Context, c *caller) outcome {
	h, cause := s.hub, context.Cause(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case o := <-c.outcome:
		return o
	default:
	}
	s.caller = nil
	if s.agent == nil || s.agent.client == nil || !s.agent.ready {
		h.settleLocked(s)
		return outcome{err: again(s.clientID, "the agent disconnected")}
	}
	if !h.callerGone(ctx) {
		h.ended.add(s.eval.ID, "cancelled")
	}
	return outcome{err: cause}
}

// answerBefore returns an answer that arrived before the slot was reserved or since then; nil
// without one.
func (s *slot) answerBefore(ctx context.Context, id string) *remote.Answer {
	h := s.hub
	h.mu.Lock()
	early, kept := s.early, s.kept
	s.early, s.kept = nil, ""
	if kept == "" && h.kept[id] != "" {
		kept = id
		delete(h.kept, id)
	}
	h.mu.Unlock()
	if early != nil {
		h.count.answered.Inc()
		return early
	}
	if kept == "" {
		return nil
	}
	answer := h.archive.take(ctx, kept)
	if answer == nil || kept != id {
		return nil
	}
	h.mu.Lock()
	h.ended.add(id, "twice")
	h.mu.Unlock()
	h.count.answered.Inc()
	return answer
}
