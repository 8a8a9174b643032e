package hub

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"time"

	"waza/runner/executor/remote"
)

// Outcome is what became of an answer.
type Outcome string

// The outcomes of answers.
const (
	// Counted answers are those that somebody waited for.
	Counted Outcome = "counted"
	// TurnedAway means that the agent does not do the evaluation now, or lacks its tool.
	TurnedAway Outcome = "turned away"
	// Kept answers wait for somebody who asks.
	Kept Outcome = "kept"
	// Twice means that the evaluation has been answered before.
	Twice Outcome = "twice"
	// Cancelled means that nobody wants the answer any more.
	Cancelled Outcome = "cancelled"
	// Unknown means that no server asked for it.
	Unknown Outcome = "unknown"
)

// The bounds of a pause that an agent asks for, in milliseconds.
const (
	pauseDefault = 1000
	pauseLeast   = 100
	pauseMost    = 600_000
)

// Answer takes an answer to the request of that id, and says what became of it. Any
// connection may bring it, also one that has been replaced: only an agent that was asked
// knows the id.
func (c *Client) Answer(requestID string, answer *remote.Answer) Outcome {
	h := c.hub
	id, ok := h.evaluationID(requestID)
	if !ok {
		return h.ignore(c, requestID, Unknown)
	}
	answer.ClientID = c.agent.ClientID
	if answer.Error != nil && (answer.Error.Code == remote.CodeRateLimited || answer.Error.Code == remote.CodeInvalidTool) {
		return c.turnAway(id, answer.Error)
	}
	h.mu.Lock()
	o := h.answerLocked(c.agent, id, answer)
	h.mu.Unlock()
	switch o {
	case Counted:
		return o
	case Kept:
		return h.keep(c, id, answer)
	}
	return h.ignore(c, requestID, o)
}

func (h *Hub) ignore(c *Client, requestID string, o Outcome) Outcome {
	h.count.ignored.WithLabelValues(string(o)).Inc()
	h.log.Debug("answer ignored", "client", c.agent.ClientID, "id", requestID[:min(len(requestID), 200)], "why", string(o))
	return o
}

// answerLocked gives the answer to those who wait. Kept means that nobody does, and that
// somebody may yet.
func (h *Hub) answerLocked(a *agent, id string, answer *remote.Answer) Outcome {
	counted := h.deliverLocked(id, answer)
	h.doneLocked(a, id)
	if !counted {
		if why := h.ended.why[id]; why != "" {
			return Outcome(why)
		}
		w := h.queue.byID[id]
		if w == nil {
			return Kept
		}
		h.queue.leave(w)
		w.result <- reserved{slot: &slot{hub: h, clientID: answer.ClientID, want: w.want, held: true, early: answer}}
	}
	a.Answered++
	delete(h.breaks, id)
	h.ended.add(id, string(Twice))
	h.changedLocked(a)
	return Counted
}

// deliverLocked ends the calls that wait for an evaluation, whichever agent they asked.
func (h *Hub) deliverLocked(id string, answer *remote.Answer) bool {
	counted := false
	for _, s := range h.asked[id] {
		if s.caller != nil {
			mine := *answer
			s.end(outcome{answer: &mine})
			counted = true
		}
	}
	return counted
}

// doneLocked notes that the agent works on the evaluation no more.
func (h *Hub) doneLocked(a *agent, id string) {
	for {
		found := false
		for _, s := range h.asked[id] {
			if s.agent != a {
				continue
			}
			h.settleLocked(s)
			if !s.held {
				h.giveBackLocked(s)
			}
			found = true
			break // the list has changed
		}
		if !found {
			return
		}
	}
}

// turnAway takes an error that says to ask another time, or another agent.
func (c *Client) turnAway(id string, fault *remote.Fault) Outcome {
	h, a := c.hub, c.agent
	h.mu.Lock()
	defer h.mu.Unlock()
	var tool string
	found := false
	for _, s := range h.asked[id] {
		if s.agent != a {
			continue
		}
		found, tool = true, s.want.Tool
		if fault.Code == remote.CodeRateLimited {
			s.end(outcome{err: again(a.ClientID, "the agent has too much to do")})
		} else {
			s.end(outcome{err: again(a.ClientID, "the agent lacks the tool "+tool)})
		}
	}
	if !found {
		h.count.ignored.WithLabelValues(string(TurnedAway)).Inc()
		return Unknown
	}
	// Before its room is free, so that it does not get the same again.
	if fault.Code == remote.CodeRateLimited {
		h.pauseLocked(a, retryAfter(fault.Data))
	} else if !slices.Contains(a.Lacks, tool) && len(a.Lacks) < mostLacks {
		h.changeLocked(a, func() { a.Lacks = append(a.Lacks[:len(a.Lacks):len(a.Lacks)], tool) })
	}
	h.doneLocked(a, id)
	h.changedLocked(a)
	return TurnedAway
}

// retryAfter reads how long the agent wants to be left alone.
func retryAfter(data json.RawMessage) time.Duration {
	var d struct {
		RetryAfter *float64 `json:"retryAfter"`
	}
	ms := float64(pauseDefault)
	if json.Unmarshal(data, &d) == nil && d.RetryAfter != nil && !math.IsNaN(*d.RetryAfter) {
		ms = min(max(*d.RetryAfter, pauseLeast), pauseMost)
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// keep stores an answer that nobody waits for now.
func (h *Hub) keep(c *Client, id string, answer *remote.Answer) Outcome {
	if h.store == nil {
		return h.ignore(c, id, Unknown)
	}
	data, err := json.Marshal(answer)
	if err == nil {
		err = h.store.SaveAnswer(context.Background(), id, answer.ClientID, data)
	}
	h.store.Unassign(id)
	if err != nil {
		h.log.Error("answer cannot be kept", "evaluation", id, "error", err)
		return h.ignore(c, id, Unknown)
	}
	h.mu.Lock()
	// Somebody may have asked meanwhile.
	o := h.answerLocked(c.agent, id, answer)
	if o == Kept {
		forget(h.kept, mostKept)
		h.kept[id] = answer.ClientID
	}
	h.mu.Unlock()
	if o != Kept {
		_, _, _, _ = h.store.TakeAnswer(context.Background(), id)
	}
	return o
}

// mostLost is how many messages that cannot be read may have been the answer to one
// evaluation.
const mostLost = 3

// Unreadable takes a message whose content is not known, and that ends the connection. It
// answers the evaluation that the agent has with fault, in place of sending it again for
// ever. Of several, any may have been answered: they are sent again, mostLost times.
func (c *Client) Unreadable(fault *remote.Fault) {
	h, a := c.hub, c.agent
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.client != c {
		return
	}
	asked := slices.DeleteFunc(slices.Clone(a.slots), func(s *slot) bool { return !s.asked })
	for _, s := range asked {
		if s.lost++; len(asked) == 1 || s.lost == mostLost {
			h.answerLocked(a, s.eval.ID, &remote.Answer{ClientID: a.ClientID, Error: fault})
		}
	}
}

// Status takes an update of an evaluation that the agent has. Others are ignored.
func (c *Client) Status(evaluationID string, s remote.Status) {
	h := c.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, asked := range h.asked[evaluationID] {
		if asked.agent != c.agent || asked.caller == nil {
			continue
		}
		if len(asked.caller.status) == mostStatus {
			h.count.ignored.WithLabelValues("status").Inc()
			continue
		}
		asked.caller.status = append(asked.caller.status, s)
		select {
		case asked.caller.wake <- struct{}{}:
		default:
		}
	}
}
